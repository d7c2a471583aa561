use super::free::Free;
use super::rule::RelayRule::{
    Base64, Between, Bool, ByKind, Count, Empty, Free as FreeJson, Is, Kept, List, Null, Object, Tagged,
    Text, Word,
};
use super::rule::{Member, RelayRule, may, must};

/// Maximum number of messages in a request, and of blocks in a message.
const MANY: usize = 100_000;

const TOOLS: usize = 256;

pub(super) const CACHE: RelayRule =
    Object(&[must("type", Word(&["ephemeral"])), may("ttl", Word(&["5m", "1h"]))]);

const TEXT: &[Member] = &[
    must("type", Text),
    must("text", Text),
    // A reply without citations has one of these two forms.
    may("citations", ByKind(&[Null, Empty])),
    may("cache_control", CACHE),
];

/// A picture whose bytes are in the request. URLs, and files at the provider, are not permitted.
const IMAGE: &[Member] = &[
    must("type", Text),
    must(
        "source",
        Tagged(
            "type",
            &[(
                "base64",
                &[
                    must("type", Text),
                    must("media_type", Word(&["image/png", "image/jpeg", "image/gif", "image/webp"])),
                    must("data", Base64),
                ],
            )],
        ),
    ),
    may("cache_control", CACHE),
];

const TOOL_RESULT: &[Member] = &[
    must("type", Text),
    must("tool_use_id", Text),
    may("content", ByKind(&[Text, List(&Tagged("type", &[("text", TEXT), ("image", IMAGE)]), MANY)])),
    may("is_error", Bool),
    may("cache_control", CACHE),
];

const TOOL_USE: &[Member] = &[
    must("type", Text),
    must("id", Text),
    must("name", Text),
    must("input", FreeJson(Free::Arguments)),
    // The call is the model's own, and not from code that the provider runs.
    may("caller", Object(&[must("type", Word(&["direct"]))])),
    may("cache_control", CACHE),
];

const THINKING: &[Member] = &[must("type", Text), must("thinking", Text), must("signature", Text)];

const REDACTED_THINKING: &[Member] = &[must("type", Text), must("data", Text)];

/// A block that reports a change of the model within the reply.
const FALLBACK: &[Member] = &[must("type", Text), may("from", MODEL), must("to", MODEL)];

const MODEL: RelayRule = Object(&[must("model", Text)]);

const USER: &[Member] = &[
    must("role", Text),
    must(
        "content",
        ByKind(&[
            Text,
            List(&Tagged("type", &[("text", TEXT), ("image", IMAGE), ("tool_result", TOOL_RESULT)]), MANY),
        ]),
    ),
];

const ASSISTANT: &[Member] = &[
    must("role", Text),
    must(
        "content",
        ByKind(&[
            Text,
            List(
                &Tagged(
                    "type",
                    &[
                        ("text", TEXT),
                        ("thinking", THINKING),
                        ("redacted_thinking", REDACTED_THINKING),
                        ("tool_use", TOOL_USE),
                        ("fallback", FALLBACK),
                    ],
                ),
                MANY,
            ),
        ]),
    ),
];

pub(super) const BODY: &[Member] = &[
    must("model", Text),
    may("max_tokens", Count),
    must("stream", Is(true)),
    may("temperature", Between(0.0, 2.0)),
    may(
        "thinking",
        Tagged(
            "type",
            &[
                ("disabled", &[must("type", Word(&["disabled"]))]),
                (
                    "adaptive",
                    &[must("type", Word(&["adaptive"])), may("display", Word(&["omitted", "summarized"]))],
                ),
                ("enabled", &[must("type", Word(&["enabled"])), must("budget_tokens", Count)]),
            ],
        ),
    ),
    may("output_config", Object(&[must("effort", Word(&["low", "medium", "high", "xhigh", "max"]))])),
    may(
        "tools",
        List(
            &Object(&[
                may("type", Word(&["custom"])),
                must("name", Text),
                may("description", Text),
                must("input_schema", FreeJson(Free::Schema)),
                may("cache_control", CACHE),
            ]),
            TOOLS,
        ),
    ),
    may("system", ByKind(&[Text, List(&Tagged("type", &[("text", TEXT)]), 16)])),
    must("messages", List(&Kept(&Tagged("role", &[("user", USER), ("assistant", ASSISTANT)])), MANY)),
];
