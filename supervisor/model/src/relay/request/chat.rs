use super::free::Free;
use super::rule::RelayRule::{
    Between, Bool, ByKind, Count, Exactly, Free as FreeJson, Is, Kept, List, Null, Object, PictureUrl,
    Tagged, Text, Word,
};
use super::rule::{Member, RelayRule, may, must};

/// Maximum number of messages in a request, and of parts in a message.
const MANY: usize = 100_000;

const TOOLS: usize = 256;

const SYSTEM: &[Member] = &[must("role", Text), must("content", Text)];

const USER: &[Member] = &[
    must("role", Text),
    must(
        "content",
        ByKind(&[
            Text,
            List(
                &Tagged(
                    "type",
                    &[
                        ("text", &[must("type", Text), must("text", Text)]),
                        (
                            "image_url",
                            &[
                                must("type", Text),
                                must(
                                    "image_url",
                                    Object(&[
                                        must("url", PictureUrl),
                                        may("detail", Word(&["auto", "low", "high"])),
                                    ]),
                                ),
                            ],
                        ),
                    ],
                ),
                MANY,
            ),
        ]),
    ),
];

/// Rule for an item of `reasoning_details`, a field of gateways.
const DETAIL: RelayRule = Tagged(
    "type",
    &[
        (
            "reasoning.text",
            &[
                must("type", Text),
                must("text", ByKind(&[Text, Null])),
                may("signature", ByKind(&[Text, Null])),
                may("id", ByKind(&[Text, Null])),
                may("format", ByKind(&[Text, Null])),
                may("index", Count),
            ],
        ),
        (
            "reasoning.encrypted",
            &[
                must("type", Text),
                must("data", Text),
                may("id", ByKind(&[Text, Null])),
                may("format", ByKind(&[Text, Null])),
                may("index", Count),
            ],
        ),
        (
            "reasoning.summary",
            &[
                must("type", Text),
                must("summary", Text),
                may("id", ByKind(&[Text, Null])),
                may("format", ByKind(&[Text, Null])),
                may("index", Count),
            ],
        ),
    ],
);

const CALL: RelayRule = Object(&[
    must("id", Text),
    must("type", Word(&["function"])),
    must("function", Object(&[must("name", Text), must("arguments", Text)])),
    // Signature that one vendor's models need back.
    may("extra_content", Object(&[must("google", Object(&[must("thought_signature", Text)]))])),
]);

const ASSISTANT: &[Member] = &[
    must("role", Text),
    may("content", ByKind(&[Text, Null])),
    may("reasoning_content", Text),
    may("reasoning", Text),
    may("reasoning_details", List(&DETAIL, MANY)),
    may("tool_calls", List(&CALL, MANY)),
];

const TOOL: &[Member] = &[must("role", Text), must("tool_call_id", Text), must("content", Text)];

pub(super) const BODY: &[Member] = &[
    must("model", Text),
    must("stream", Is(true)),
    may("stream_options", Object(&[must("include_usage", Is(true))])),
    may("max_tokens", Count),
    may("max_completion_tokens", Count),
    may("n", Exactly(1)),
    may("store", Is(false)),
    may("reasoning_effort", Word(&["low", "medium", "high"])),
    may("temperature", Between(0.0, 2.0)),
    may(
        "tools",
        List(
            &Object(&[
                must("type", Word(&["function"])),
                must(
                    "function",
                    Object(&[
                        must("name", Text),
                        may("description", Text),
                        must("parameters", FreeJson(Free::Schema)),
                        may("strict", Bool),
                    ]),
                ),
            ]),
            TOOLS,
        ),
    ),
    must(
        "messages",
        List(
            &Kept(&Tagged(
                "role",
                &[("system", SYSTEM), ("user", USER), ("assistant", ASSISTANT), ("tool", TOOL)],
            )),
            MANY,
        ),
    ),
];
