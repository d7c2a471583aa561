//! Tests a plan on the screen: it is edited in an editor, compared with its earlier version, approved and executed.

use serde_json::json;
use tests::replies::{calls, done, model_of};
use tests::ui::Ui;

use super::{sent, world};

/// Plan whose unknown sections and comments must stay unchanged.
const PLAN: &str = "# Two words

<!-- mine -->
## Steps
### 1. One
Write a word.

### 2. Two
Acceptance:
- `true`

## Anything else
*  untouched
";

#[test]
fn the_steps_of_a_plan_are_edited_in_place_and_the_edited_plan_is_executed() {
    let status = |step: u32| ("update_step", json!({ "step": step, "status": "completed" }));
    let replies = [
        calls(&[("write_plan", json!({ "markdown": PLAN }))]),
        calls(&[status(1), status(2), status(3)]),
        done(),
        done(),
    ];
    let (world, server) = (world(), model_of(replies));
    let mut ui = Ui::start(&world.ui(&server, &["--activity", "plan"]), (110, 40));
    ui.types("plan it\r");
    ui.until_shown("Execute this plan?");
    ui.press_until("i", "as you edit them");
    // The second step becomes the first, and a step is added after it. Text that a plan cannot contain is reported, and
    // stays in its field.
    ui.types("]");
    ui.until_shown("▸ 2   Two");
    ui.types("K");
    ui.until_shown("▸ 1   Two");
    ui.types("a");
    ui.until_shown("title ›");
    ui.types("Three\r");
    ui.until_shown("▸ 2   Three");
    ui.types("j\r");
    ui.until_shown("text ›");
    ui.types("## Steps\r");
    ui.until_shown("text  ## Steps");
    ui.press_until("s", "the plan was not changed: cannot write the plan: line ");
    ui.types("u");
    ui.until_shown("text  none");
    ui.press_until("s", "= 2 versions");
    ui.press_until("=", "from 1 to 2, ");
    let screen = ui.screen();
    assert!(screen.contains("by the planner") && screen.contains("by you"), "{screen}");
    assert!(screen.contains("+### 2. Three"), "{screen}");
    ui.types("q");
    ui.until_shown("the complete plan");
    ui.press_until("G", "y yes");
    ui.press_until_so("y", "the card is gone", |screen| !screen.contains("Execute this plan?"));
    ui.until_shown("Done.");
    let task = sent(&server, 1);
    for kept in ["### 1. Two", "### 2. Three", "### 3. One", "<!-- mine -->", "*  untouched"] {
        assert!(task.contains(kept), "{kept}: {task}");
    }
    ui.types("\x15:q\r");
    assert_eq!(ui.end().code, 0);
    let log = world.log();
    let created: Vec<_> = log.iter().filter(|event| event["type"] == "plan_created").collect();
    let authors: Vec<_> = created.iter().map(|event| event["data"]["author"].clone()).collect();
    assert_eq!(authors, ["planner", "person"]);
    let approved = log.iter().find(|event| event["type"] == "plan_approved").unwrap();
    assert_eq!(approved["data"]["digest"], created[1]["data"]["digest"]);
}
