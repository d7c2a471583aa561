use insta::assert_snapshot;
use protocol::frontend::{AgentAction, UiEventKind, UserActionKind};
use protocol::server_prompt::{ExpandedPrompt, ServerPrompt, ServerPromptArgument, WantedPrompt};

use crate::seat::Seat;

fn seat() -> Seat {
    let mut seat = Seat::new(70, 16);
    let argument = |name: &str, required| ServerPromptArgument { name: name.to_owned(), required };
    let prompt = |name: &str, description: &str, arguments| ServerPrompt {
        server: "docs".to_owned(),
        name: name.to_owned(),
        description: description.to_owned(),
        arguments,
    };
    seat.core(UiEventKind::ServerPrompts {
        prompts: vec![
            prompt(
                "greet",
                "Greets \u{1b}[31msomebody.",
                vec![argument("who", true), argument("how", false)],
            ),
            prompt("review", "Reviews the change.", vec![]),
        ],
    });
    seat
}

fn expanded(text: Result<&str, &str>) -> UiEventKind {
    UiEventKind::PromptExpanded(Box::new(ExpandedPrompt {
        server: "docs".to_owned(),
        name: "greet".to_owned(),
        text: text.ok().map(str::to_owned),
        failed: text.err().map(str::to_owned),
    }))
}

fn above_status(seat: &Seat) -> String {
    let screen = seat.screen();
    let rows: Vec<_> = screen.lines().collect();
    rows[rows.len() - 5..rows.len() - 1].join("\n")
}

#[test]
fn prompts_are_commands_of_the_list_and_their_arguments_are_asked_for() {
    let mut seat = seat();
    seat.keys("/docs");
    assert_snapshot!(above_status(&seat), @r"
    ▸ /docs:greet WHO [HOW]     Greets \u{1b}[31msomebody.
      /docs:review              Reviews the change.
    ──────────────────────────────────────────────────────────────────────
    › /docs
    ");
    // Enter completes the name of a prompt that needs an argument, and then says which argument is missing.
    seat.keys("\n");
    assert!(seat.told().is_empty());
    seat.keys("\n");
    assert!(seat.screen().contains("docs:greet also needs who: /docs:greet WHO [HOW]"), "{}", seat.screen());
    assert!(seat.screen().contains("› /docs:greet"), "{}", seat.screen());
    seat.keys("Ada\n");
    let arguments = [("who".to_owned(), "Ada".to_owned())].into();
    let wanted = WantedPrompt { server: "docs".to_owned(), name: "greet".to_owned(), arguments };
    assert_eq!(seat.told(), [UserActionKind::ExpandPrompt(wanted)]);
}

#[test]
fn the_text_of_a_prompt_waits_to_be_sent() {
    let mut seat = seat();
    seat.keys("/docs:greet Ada\n");
    seat.told();
    seat.core(expanded(Ok("Greet Ada.\nKindly\u{1b}[2J.")));
    assert!(seat.told().is_empty(), "nothing is sent by itself");
    assert!(seat.screen().contains("› Greet Ada."), "{}", seat.screen());
    seat.keys(" Now.\n");
    let [UserActionKind::Agent(AgentAction::Prompt { text, .. })] = &seat.told()[..] else {
        panic!("not sent")
    };
    assert!(text.starts_with("Greet Ada.\nKindly") && text.ends_with(" Now."), "{text:?}");
}

#[test]
fn the_text_stands_behind_what_was_written_meanwhile_and_a_failure_is_told() {
    let mut seat = seat();
    seat.keys("mine");
    seat.core(expanded(Ok("/quit")));
    seat.keys("\n");
    let text = "mine\n/quit".to_owned();
    assert_eq!(seat.told(), [UserActionKind::Agent(AgentAction::Prompt { text, images: vec![] })]);
    seat.core(expanded(Err("it did not answer")));
    assert!(
        seat.screen().contains("cannot get the prompt docs:greet: it did not answer"),
        "{}",
        seat.screen()
    );
}

#[test]
fn the_text_of_a_prompt_is_no_command_of_the_person() {
    for hostile in ["!rm -rf .", "/quit", ":quit"] {
        let mut seat = seat();
        seat.core(expanded(Ok(hostile)));
        seat.keys("\n");
        let text = format!(" {hostile}");
        assert_eq!(seat.told(), [UserActionKind::Agent(AgentAction::Prompt { text, images: vec![] })]);
    }
}
