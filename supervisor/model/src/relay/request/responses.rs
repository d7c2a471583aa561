use super::free::Free;
use super::rule::RelayRule::{
    Between, Bool, ByKind, Count, Empty, Free as FreeJson, Is, Kept, List, Null, Object, PictureUrl, Tagged,
    Text, Word,
};
use super::rule::{Member, RelayRule, may, must};

/// Maximum number of items in a request, and of parts in an item.
const MANY: usize = 100_000;

const TOOLS: usize = 256;

const STATUS: RelayRule = ByKind(&[Null, Word(&["in_progress", "completed", "incomplete"])]);

const INPUT_TEXT: &[Member] = &[must("type", Text), must("text", Text)];

const INPUT_IMAGE: &[Member] =
    &[must("type", Text), may("detail", Word(&["auto", "low", "high"])), must("image_url", PictureUrl)];

const OUTPUT_TEXT: &[Member] = &[
    must("type", Text),
    must("text", Text),
    may("annotations", ByKind(&[Null, Empty])),
    may("logprobs", ByKind(&[Null, Empty])),
];

const REFUSAL: &[Member] = &[must("type", Text), must("refusal", Text)];

const MESSAGE: &[Member] = &[
    must("type", Text),
    must("role", Word(&["user", "assistant"])),
    must(
        "content",
        ByKind(&[
            Text,
            List(
                &Tagged(
                    "type",
                    &[
                        ("input_text", INPUT_TEXT),
                        ("input_image", INPUT_IMAGE),
                        ("output_text", OUTPUT_TEXT),
                        ("refusal", REFUSAL),
                    ],
                ),
                MANY,
            ),
        ]),
    ),
    may("id", Text),
    may("status", STATUS),
    may("phase", ByKind(&[Null, Word(&["commentary", "final_answer"])])),
];

const FUNCTION_CALL: &[Member] = &[
    must("type", Text),
    must("call_id", Text),
    must("name", Text),
    must("arguments", Text),
    may("id", Text),
    may("status", STATUS),
];

const FUNCTION_CALL_OUTPUT: &[Member] = &[
    must("type", Text),
    must("call_id", Text),
    must(
        "output",
        ByKind(&[
            Text,
            List(&Tagged("type", &[("input_text", INPUT_TEXT), ("input_image", INPUT_IMAGE)]), MANY),
        ]),
    ),
];

const REASONING: &[Member] = &[
    must("type", Text),
    may("id", Text),
    may(
        "summary",
        List(&Tagged("type", &[("summary_text", &[must("type", Text), must("text", Text)])]), MANY),
    ),
    may(
        "content",
        ByKind(&[
            Null,
            List(&Tagged("type", &[("reasoning_text", &[must("type", Text), must("text", Text)])]), MANY),
        ]),
    ),
    may("encrypted_content", ByKind(&[Text, Null])),
    may("status", STATUS),
    // Vendor of the reasoning, which a gateway forwards.
    may("format", ByKind(&[Text, Null])),
    may("signature", ByKind(&[Text, Null])),
];

pub(super) const BODY: &[Member] = &[
    must("model", Text),
    may("instructions", Text),
    may(
        "tools",
        List(
            &Object(&[
                must("type", Word(&["function"])),
                must("name", Text),
                may("description", Text),
                must("parameters", FreeJson(Free::Schema)),
                may("strict", Bool),
            ]),
            TOOLS,
        ),
    ),
    may("max_output_tokens", Count),
    may("temperature", Between(0.0, 2.0)),
    may(
        "reasoning",
        Object(&[
            may("effort", Word(&["none", "low", "medium", "high", "xhigh"])),
            may("summary", Word(&["auto"])),
        ]),
    ),
    must("stream", Is(true)),
    may("store", Is(false)),
    may("include", List(&Word(&["reasoning.encrypted_content"]), 1)),
    must(
        "input",
        List(
            &Kept(&Tagged(
                "type",
                &[
                    ("message", MESSAGE),
                    ("function_call", FUNCTION_CALL),
                    ("function_call_output", FUNCTION_CALL_OUTPUT),
                    ("reasoning", REASONING),
                ],
            )),
            MANY,
        ),
    ),
];
