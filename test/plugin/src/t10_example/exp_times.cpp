// The body of `bool compute(unsigned worker)`, called with every worker number from 0 to 5: fields by their names.
const int n = int(rows * columns);
for (int i = int(worker); i < n; i += 6) {
  const int row = i / int(columns);
  const int column = i % int(columns);
  const float value = values[row * from_row + column * from_column];
  result[row * to_row + column * to_column] = expf(value) * value;
}
return true;
