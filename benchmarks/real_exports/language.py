"""Language models of transformers: decoders, encoders, both, mixtures of experts, state spaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from real_exports.network import SMALL, WORDS, of_config, tokens, torch

KV = {**SMALL, "num_key_value_heads": 1}
EXPERTS = {**KV, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
MLA = {
    **{key: value for key, value in KV.items() if key != "num_key_value_heads"},
    "num_key_value_heads": 2,
    "q_lora_rank": 12,
    "kv_lora_rank": 8,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "moe_intermediate_size": 16,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 0,
    "topk_method": "greedy",
}


def _sentence() -> Mapping[str, Any]:
    return {"input_ids": tokens(), "attention_mask": torch.ones(1, 6, dtype=torch.int64)}


def _decoder(
    name: str, family: str, options: Mapping[str, Any], head: str = "ForCausalLM", config: str = ""
) -> None:
    of_config(name, family, options, _sentence, head=head, call={"use_cache": False}, config=config)


def _encoder(name: str, family: str, options: Mapping[str, Any], head: str = "Model") -> None:
    def words() -> Mapping[str, Any]:
        mask = torch.ones(1, 6, dtype=torch.int64)
        mask[0, 4:] = 0
        return {"input_ids": tokens(), "attention_mask": mask}

    of_config(name, family, options, words, head=head)


GPT2 = {"vocab_size": WORDS, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 32}
_decoder("gpt2", "GPT2", GPT2, "LMHeadModel")
_decoder("llama3", "Llama", {**KV, "num_hidden_layers": 2})
_decoder("mistral", "Mistral", {**KV, "sliding_window": 4})
_decoder("mixtral", "Mixtral", {**KV, "num_local_experts": 4})
_decoder("qwen2", "Qwen2", KV)
_decoder("qwen3", "Qwen3", {**KV, "head_dim": 16})
_decoder("qwen3_moe", "Qwen3Moe", {**EXPERTS, "num_experts": 4, "head_dim": 16})
_decoder("gemma", "Gemma", {**KV, "head_dim": 16})
_decoder("gemma2", "Gemma2", {**KV, "head_dim": 16, "num_hidden_layers": 2, "sliding_window": 4})
_decoder("gemma3", "Gemma3", {**KV, "head_dim": 16, "sliding_window": 4}, config="Gemma3Text")
_decoder("phi", "Phi", {**SMALL, "partial_rotary_factor": 0.5})
_decoder("phi3", "Phi3", KV)
_decoder("opt", "OPT", {**SMALL, "ffn_dim": 48, "word_embed_proj_dim": 32})
_decoder("bloom", "Bloom", {"vocab_size": WORDS, "hidden_size": 32, "n_layer": 1, "n_head": 2})
_decoder("gpt_neox", "GPTNeoX", SMALL)
_decoder("gptj", "GPTJ", {**GPT2, "rotary_dim": 8, "n_layer": 1})
_decoder("falcon", "Falcon", {**SMALL, "new_decoder_architecture": False})
_decoder("stablelm", "StableLm", KV)
_decoder("starcoder2", "Starcoder2", KV)
_decoder("olmo2", "Olmo2", KV)
_decoder("cohere", "Cohere", KV)
_decoder("granite", "Granite", KV)
_decoder("smollm3", "SmolLM3", KV)
_decoder("gpt_oss", "GptOss", {**KV, "num_local_experts": 4, "head_dim": 16, "sliding_window": 4})
_decoder("deepseek_v2", "DeepseekV2", MLA)
_decoder("deepseek_v3", "DeepseekV3", {key: value for key, value in MLA.items() if key != "topk_method"})
_decoder("mpt", "Mpt", {"vocab_size": WORDS, "d_model": 32, "n_heads": 2, "n_layers": 1, "max_seq_len": 32})
STATES = {"vocab_size": WORDS, "hidden_size": 16, "num_hidden_layers": 1, "state_size": 4}
_decoder("mamba", "Mamba", STATES)
_decoder("mamba2", "Mamba2", {**STATES, "num_heads": 4, "head_dim": 8, "n_groups": 1, "chunk_size": 8})
_decoder(
    "rwkv",
    "Rwkv",
    {"vocab_size": WORDS, "context_length": 16, "hidden_size": 16, "num_hidden_layers": 2},
)
_encoder("bert", "Bert", {**SMALL, "num_hidden_layers": 2})
_encoder("roberta", "Roberta", {**SMALL, "max_position_embeddings": 40})
_encoder(
    "distilbert",
    "DistilBert",
    {"vocab_size": WORDS, "dim": 32, "n_layers": 1, "n_heads": 2, "hidden_dim": 48},
)
_encoder("albert", "Albert", {**SMALL, "embedding_size": 16})
_encoder("electra", "Electra", {**SMALL, "embedding_size": 16})
_encoder("deberta_v2", "DebertaV2", {**SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]})
_encoder("mpnet", "MPNet", SMALL)
_encoder("modernbert", "ModernBert", {**SMALL, "num_hidden_layers": 2, "global_attn_every_n_layers": 2})
_encoder("squeezebert", "SqueezeBert", {**SMALL, "embedding_size": 32})


def _pairs() -> Mapping[str, Any]:
    return {"input_ids": tokens(), "decoder_input_ids": tokens(4)}


BART = {
    "vocab_size": WORDS,
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 32,
}
T5 = {"vocab_size": WORDS, "d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 1, "num_heads": 2}
of_config("t5", "T5", T5, _pairs, head="ForConditionalGeneration", call={"use_cache": False})
of_config("bart", "Bart", BART, _pairs, head="ForConditionalGeneration", call={"use_cache": False})
of_config("marian", "Marian", {**BART, "pad_token_id": 0}, _pairs, head="MTModel", call={"use_cache": False})
