// Opens pages in a headless Chromium, 1280 and 420 pixels wide, light and dark: nothing may fail or be cut off.
// Every page is opened again with names of operators that are 150 characters long.
// A page that compares outputs shows the comparison, the rotation and the front on its first screen.
//
// usage: node tools/check_page.cjs PICTURES PAGE.html...      (`make page` installs what it needs and runs it)
"use strict";

const fs = require("fs");
const path = require("path");

const ROOM = path.join(__dirname, "..", "build", "page");
const load = (name) => require(require.resolve(name, { paths: [ROOM] }));
const bundled = load("@sparticuz/chromium");
const chromium = bundled.default || bundled;
const puppeteer = load("puppeteer-core");

const HEIGHT = 900;
const NAME_LENGTH = 150;

/** Write a copy of a page whose operators have long names; returns its path. */
function withLongNames(file, folder) {
  const long = (name) => `${name}/`.repeat(NAME_LENGTH).slice(0, NAME_LENGTH - name.length) + name;
  const renamed = (key, value) => {
    if (!Array.isArray(value) || (key !== "operators" && key !== "rows")) return value;
    return value.map((each) => (typeof each.name === "string" ? { ...each, name: long(each.name) } : each));
  };
  const text = fs.readFileSync(file, "utf8").replace(/(<script type="application\/json" id="data">)(.*?)(<\/script>)/s,
    (_, before, data, after) => before + JSON.stringify(JSON.parse(data), renamed).replace(/</g, "\\u003c") + after);
  const copy = path.join(folder, `long-${path.basename(file)}`);
  fs.writeFileSync(copy, text);
  return copy;
}

/** What of a page that begins with a comparison of the outputs is not on its first screen. */
async function below(page, height) {
  return page.evaluate((bottom) => {
    if (!document.querySelector(".check")) return [];
    const parts = { "the comparison": ".check", "the rotation": "#rings svg", "time against memory": "#front canvas" };
    return Object.keys(parts).filter((name) => document.querySelector(parts[name]).getBoundingClientRect().bottom > bottom);
  }, height);
}

/** Use a page as a person would; returns what is wrong with it. */
async function used(page) {
  return page.evaluate(async () => {
    const wrong = [];
    const expect = (what, ok) => { if (!ok) wrong.push(what); };
    const rows = () => [...document.querySelectorAll("tbody tr")];
    expect("there are operators", rows().length > 0);
    const name = rows()[rows().length - 1].cells[0].textContent;
    const search = document.querySelector("input[type=search]");
    search.value = name;
    search.dispatchEvent(new Event("input"));
    expect("a search finds the operator", rows().some((row) => row.cells[0].textContent === name));
    search.value = "";
    search.dispatchEvent(new Event("input"));
    const cycles = [...document.querySelectorAll("th button")].find((each) => each.textContent.startsWith("cycles"));
    if (innerWidth > 1000) expect("cycles are in view", cycles.getBoundingClientRect().right < innerWidth);
    cycles.click();
    const numbers = rows().map((row) => Number(row.cells[cycles.closest("th").cellIndex].textContent.replace(/,/g, "")));
    expect("a click on a heading sorts", numbers.every((n, i) => i === 0 || numbers[i - 1] >= n));
    rows()[0].click();
    expect("a click marks the row", rows()[0].classList.contains("chosen"));
    if (document.getElementById("pipeline")) {
      expect("the pipeline is drawn", document.querySelectorAll("#pipeline canvas").length === 1);
      expect("every stage has its bars", document.querySelectorAll("svg.bars").length === 2);
      expect("every stage links to its page", rows().every((row) => /^stage-[0-9]+[.]html$/.test(row.querySelector("a").getAttribute("href"))));
      for (const id of ["zoom-in", "zoom-interval", "zoom-out", "zoom-all"]) document.getElementById(id).click();
      return wrong;
    }
    if (document.getElementById("runs")) {
      expect("two runs are drawn", document.querySelectorAll("#runs canvas").length === 1);
      for (const id of ["zoom-in", "zoom-out", "zoom-all"]) document.getElementById(id).click();
      return wrong;
    }
    const shown = document.getElementById("operator-name").textContent;
    expect("a click shows the operator", shown.startsWith(rows()[0].cells[0].textContent));
    expect("charts are drawn", document.querySelectorAll(".uplot canvas").length >= 3);
    const { cellIndex } = [...document.querySelectorAll("th")].find((each) => each.textContent === "rotating");
    const turning = rows().find((row) => Number(row.cells[cellIndex].textContent) > 0);
    if (turning) {
      turning.click();
      const before = document.getElementById("rings").innerHTML;
      document.getElementById("rotation-next").click();
      expect("a step moves what cores hold", before !== document.getElementById("rings").innerHTML);
      document.getElementById("rotation-back").click();
      expect("a step back undoes it", before === document.getElementById("rings").innerHTML);
    }
    document.querySelector("#memory-purposes input").click();
    document.querySelector("#memory-purposes input").click();
    for (const metric of ["held", "in", "out", "busy"]) {
      document.getElementById("tiles-metric").value = metric;
      document.getElementById("tiles-metric").dispatchEvent(new Event("change"));
      expect(`tiles show ${metric}`, /on average/.test(document.getElementById("tiles-note").textContent));
    }
    for (const id of ["zoom-in", "zoom-out", "zoom-all", "zoom-operator"]) document.getElementById(id).click();
    const chart = document.querySelector("#timeline .u-over");
    const { left, top, width } = chart.getBoundingClientRect();
    chart.dispatchEvent(new MouseEvent("mousemove", { clientX: left + width / 2, clientY: top + 40, bubbles: true }));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    expect("steps are shown", /step [0-9]+ of [0-9]+: /.test(document.getElementById("time-readout").textContent));
    document.getElementById("zoom-all").click();
    return wrong;
  });
}

async function main() {
  const [pictures, ...files] = process.argv.slice(2);
  // As in a container: the language of the browser is then "en-US@posix", which is no language tag.
  const env = { ...process.env, LANG: "C.UTF-8", LC_ALL: "C.UTF-8", LANGUAGE: "" };
  const browser = await puppeteer.launch({
    args: chromium.args, executablePath: await chromium.executablePath(), headless: "shell", env,
  });
  const wrong = [];
  const copies = files.map((file) => withLongNames(file, pictures));
  for (const file of [...files, ...copies]) {
    for (const width of [1280, 420]) {
      for (const scheme of ["light", "dark"]) {
        const name = `${path.basename(file, ".html")}-${width}-${scheme}`;
        const page = await browser.newPage();
        page.on("pageerror", (error) => wrong.push(`${name}: ${error.message}`));
        page.on("console", (message) => { if (message.type() === "error") wrong.push(`${name}: ${message.text()}`); });
        page.on("request", (request) => {
          if (!/^(file|data):/.test(request.url())) wrong.push(`${name}: asks for ${request.url()}`);
        });
        await page.setViewport({ width, height: HEIGHT });
        await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
        await page.goto(`file://${path.resolve(file)}`);
        const missed = copies.includes(file) ? [] : await below(page, HEIGHT);
        wrong.push(...missed.map((each) => `${name}: not on the first screen: ${each}`));
        wrong.push(...(await used(page)).map((each) => `${name}: not so: ${each}`));
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        if (wide > width) wrong.push(`${name}: ${wide} pixels wide`);
        await page.screenshot({ path: path.join(pictures, `${name}.png`), fullPage: true });
        await page.close();
      }
    }
  }
  await browser.close();
  wrong.forEach((each) => console.error(each));
  console.log(`${files.length} pages, also with long names, 2 widths, 2 colour schemes: ${wrong.length} defects`);
  process.exit(wrong.length ? 1 : 0);
}

main().catch((error) => { console.error(error); process.exit(1); });
