use super::find;

const TOOLS: [&str; 4] = ["read_file", "shell_exec", "write_file", "list_directory"];

/// Calls as text. The label of each names the model, server or client that writes calls in this form.
const CALLS: &[(&str, &str)] = &[
    (
        "Hermes, Qwen",
        "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>",
    ),
    (
        "behind words",
        "I look at it. <tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}</tool_call>",
    ),
    ("not closed", "Now:\n<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}"),
    ("broken JSON", "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}\n</tool_call>"),
    (
        "two calls",
        "<tool_call>{\"name\":\"read_file\",\"arguments\":{}}</tool_call>\n<tool_call>{\"name\":\"shell_exec\",\"arguments\":{}}</tool_call>",
    ),
    (
        "behind thoughts",
        "<think>I have to read `a`.</think>\n\n<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n</tool_call><|im_end|>",
    ),
    (
        "Qwen coder",
        "<tool_call>\n<function=read_file>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>",
    ),
    (
        "Qwen coder, half",
        "I look.\n\n<function=shell_exec>\n<parameter=command>\ngrep '</function>' a\n</parameter>\n</function>\n</tool_call>",
    ),
    ("Llama 3.1", "<function=read_file>{\"path\": \"a\"}</function>"),
    ("Llama 3.1", "<|python_tag|>{\"name\": \"read_file\", \"parameters\": {\"path\": \"a\"}}<|eom_id|>"),
    ("Llama 3.2", "{\"name\": \"read_file\", \"parameters\": {\"path\": \"a\"}}"),
    ("Llama 4", "[read_file(path=\"a\"), read_file(path=\"b\")]"),
    ("Mistral", "[TOOL_CALLS] [{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}]"),
    ("Mistral, newer", "[TOOL_CALLS]read_file[ARGS]{\"path\": \"a\"}"),
    ("Mistral, behind words", "I look at it.[TOOL_CALLS]read_file{\"path\": \"a\"}"),
    ("Granite", "<|tool_call|>[{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}]"),
    ("Phi 4", "<|tool_call|>[{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}]<|/tool_call|>"),
    ("Phi 4 mini", "functools[{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}]"),
    (
        "DeepSeek V3",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n```json\n{\"path\": \"a\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    (
        "DeepSeek V3.1",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{\"path\": \"a\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    (
        "DeepSeek V3.2",
        "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"read_file\">\n<｜DSML｜parameter name=\"path\" string=\"true\">a</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    ),
    (
        "Kimi K2",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{\"path\": \"a\"}<|tool_call_end|><|tool_calls_section_end|>",
    ),
    ("Kimi K2, bare", "I look at it. functions.read_file:0{\"path\": \"a\"}"),
    (
        "gpt-oss",
        "<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{\"path\":\"a\"}<|call|>",
    ),
    ("gpt-oss, bare", "commentary to=functions.read_file json{\"path\":\"a\"}"),
    (
        "gpt-oss, joined",
        "analysisI have to look.assistantcommentary to=functions.read_file json{\"path\":\"a\"}",
    ),
    (
        "Claude",
        "<function_calls>\n<invoke name=\"read_file\">\n<parameter name=\"path\">a</parameter>\n</invoke>\n</function_calls>",
    ),
    (
        "MiniMax",
        "<minimax:tool_call>\n<invoke name=\"read_file\">\n<parameter name=\"path\">a</parameter>\n</invoke>\n</minimax:tool_call>",
    ),
    ("GLM", "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>"),
    (
        "Seed",
        "<seed:tool_call>\n<function=read_file>\n<parameter=path>a</parameter>\n</function>\n</seed:tool_call>",
    ),
    ("Gemma", "```tool_code\nprint(default_api.read_file(path='a'))\n```"),
    ("FunctionGemma", "<start_function_call>call:read_file{path:<escape>a<escape>}<end_function_call>"),
    ("LFM2", "<|tool_call_start|>[read_file(path=\"a\")]<|tool_call_end|>"),
    ("Nemotron", "<TOOLCALL>[{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}]</TOOLCALL>"),
    (
        "InternLM",
        "<|action_start|><|plugin|>\n{\"name\": \"read_file\", \"parameters\": {\"path\": \"a\"}}<|action_end|>",
    ),
    (
        "Command R",
        "Action: ```json\n[{\"tool_name\": \"read_file\", \"parameters\": {\"path\": \"a\"}}]\n```",
    ),
    (
        "Command A",
        "<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"read_file\", \"parameters\": {\"path\": \"a\"}}]<|END_ACTION|>",
    ),
    (
        "LM Studio",
        "[TOOL_REQUEST]{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}[END_TOOL_REQUEST]",
    ),
    ("ReAct", "Thought: I have to look.\nAction: read_file\nAction Input: {\"path\": \"a\"}"),
    ("Cline", "I look at it.\n\n<read_file>\n<path>a</path>\n</read_file>"),
    (
        "by elements",
        "<tool_use>\n<name>read_file</name>\n<arguments>{\"path\":\"a\"}</arguments>\n</tool_use>",
    ),
    ("a block of JSON", "```json\n{\"tool\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```"),
    (
        "a block behind words",
        "Let me look at the file first:\n\n```json\n{\"tool\": \"read_file\", \"path\": \"a\"}\n```\n",
    ),
    (
        "a block without label",
        "```\n<tool_call>{\"name\": \"read_file\", \"arguments\": {}}</tool_call>\n```",
    ),
    (
        "OpenAI's own",
        "{\"tool_calls\": [{\"id\": \"1\", \"type\": \"function\", \"function\": {\"name\": \"read_file\", \"arguments\": \"{}\"}}]}",
    ),
    (
        "Anthropic's own",
        "{\"type\": \"tool_use\", \"id\": \"1\", \"name\": \"read_file\", \"input\": {\"path\": \"a\"}}",
    ),
    ("LangChain", "{\"action\": \"read_file\", \"action_input\": {\"path\": \"a\"}}"),
    ("as a function", "read_file(path=\"a (b).txt\")"),
    ("its name, then JSON", "Now I read it.\n\nread_file\n{\"path\": \"a\"}"),
];

/// Replies that name tools or show forms of calls, but contain no call.
const INNOCENT: &[(&str, &str)] = &[
    ("an answer", "The file `a` has three lines."),
    ("a tool by its name", "I used read_file(path) to look at it, and shell_exec (twice)."),
    (
        "a name at the beginning",
        "read_file (the tool) found nothing, and list_directory (the other) neither.",
    ),
    (
        "a block that is explained",
        "Qwen writes:\n\n```\n<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>\n```\n\nvLLM's parser hermes reads that.",
    ),
    (
        "a block at the end of an explanation",
        "A call of the tool looks like this:\n\n```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```",
    ),
    (
        "two blocks",
        "Before:\n\n```json\n{\"name\": \"read_file\", \"arguments\": {}}\n```\n\nAfter:\n\n```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n```",
    ),
    (
        "code between words",
        "Hermes puts `<tool_call>{\"name\": \"read_file\", \"arguments\": {}}</tool_call>` around it",
    ),
    ("words behind a mark", "The mark <tool_call> begins a call, as of read_file, and </tool_call> ends it."),
    (
        "words behind a call",
        "<tool_call>{\"name\": \"read_file\", \"arguments\": {}}</tool_call> is the form of Qwen (see its template)",
    ),
    (
        "a quotation",
        "The log says:\n\n> <tool_call>{\"name\": \"read_file\", \"arguments\": {}}</tool_call>\n",
    ),
    (
        "a text that is set in",
        "The log says:\n\n    <tool_call>{\"name\": \"read_file\", \"arguments\": {}}</tool_call>\n",
    ),
    (
        "a tool of others",
        "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Bern\"}}\n</tool_call>",
    ),
    (
        "a definition",
        "{\"name\": \"read_file\", \"description\": \"Reads\", \"parameters\": {\"type\": \"object\", \"properties\": {}}}",
    ),
    (
        "a definition, without words",
        "{\"type\": \"function\", \"function\": {\"name\": \"read_file\", \"parameters\": {\"type\": \"object\", \"properties\": {}}}}",
    ),
    ("settings", "```json\n{\"name\": \"read_file\", \"version\": \"1.0\"}\n```"),
    ("an answer in JSON", "{\"files\": [\"a\"], \"tool\": null}"),
    ("a program", "```rust\nlet call = r#\"{\"name\": \"read_file\", \"arguments\": {}}\"#;\n```"),
    ("a list", "- read_file: reads\n- shell_exec: runs"),
    ("HTML", "<section>\n<function-list>read_file</function-list>\n</section>"),
    ("a mark of a template", "The token <|tool_call|> stands before the list."),
    ("actions in words", "Action: read_file was run.\nResult: three lines."),
    ("a reference", "[read_file](docs/tools.md)"),
    ("nothing", ""),
];

#[test]
fn z5_a_call_as_text_is_known_in_the_form_of_every_maker() {
    let missed: Vec<_> = CALLS.iter().filter(|(_, text)| find(text, &TOOLS).is_none()).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    assert_eq!(find("<function=shell_exec>{}</function>", &TOOLS), Some("shell_exec"));
}

#[test]
fn z5_a_call_of_no_tool_of_ours_is_none() {
    for (name, text) in CALLS {
        assert_eq!(find(text, &["other_tool"]), None, "{name}");
    }
}

#[test]
fn z5_an_answer_that_names_or_explains_calls_is_an_answer() {
    let mistaken: Vec<_> = INNOCENT.iter().filter(|(_, text)| find(text, &TOOLS).is_some()).collect();
    assert!(mistaken.is_empty(), "{mistaken:#?}");
    for (name, call) in CALLS {
        let explained = format!("The form of {name}:\n\n~~~text\n{call}\n~~~\n\nThat is all there is to it.");
        assert_eq!(find(&explained, &TOOLS), None, "{name}");
    }
}

#[test]
fn z5_a_long_reply_of_marks_is_no_call() {
    for piece in [
        "<tool_call>",
        "[TOOL_CALLS]",
        "{\n",
        "[\n",
        "read_file(\n",
        "<read_file>\n",
        "<|a|>",
        "functions.",
        "```\n",
        "```json\n{}\n```\n",
    ] {
        assert_eq!(find(&piece.repeat(5_000), &TOOLS).filter(|_| piece != "<read_file>\n"), None, "{piece}");
    }
}
