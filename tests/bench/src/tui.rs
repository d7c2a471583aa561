//! Benchmark of the terminal UI without a terminal: the CPU time of a frame while a reply streams into a long
//! transcript.

use std::fs;

use ipc::confinement::Tier;
use ipc::id::{AgentId, ConversationId};
use ipc::rights::Network;
use nix::sys::resource::UsageWho;
use protocol::approval::ApprovalMode;
use protocol::event::Activity;
use protocol::frontend::{UiEvent, UiEventKind};
use ratatui::layout::Size;
use supervisor::front::terminal_ui::Painter;
use tui::keymap::Keymap;
use tui::{Capabilities, Colour, KnownModels, Model, Msg, Origins, Previews, Start, ThemeName, UiTime};

use super::stats::{BenchReport, Measurement, cpu_time};
use super::{BenchError, BenchSetup};

pub(super) const LINES: usize = 100_000;

pub(super) const LINE: &str = "a line of the transcript, as long as lines of prose usually are (1234567890)";

/// Number of samples. Each consists of many frames, because some kernels count CPU time in ticks.
const BATCHES: u32 = 20;
const FRAMES: u32 = 50;
const SIZE: Size = Size::new(200, 50);

/// Measures the CPU time of a frame at 200x50 while a reply streams, with 100,000 lines: updating the UI's state,
/// drawing, and the bytes for the terminal. Some deltas arrive before each frame.
pub(super) fn streaming_frame(setup: &BenchSetup) -> Result<BenchReport, BenchError> {
    let (mut model, mut painter) = (model(setup)?, Painter::new(SIZE)?);
    let memory = resident()?;
    for _ in 0..LINES {
        tell(&mut model, 0, &format!("{LINE}\n"));
    }
    draw(&mut painter, &model)?;
    let grown = resident()? - memory;
    let mut samples = Vec::new();
    for batch in 0..BATCHES {
        let before = cpu_time(UsageWho::RUSAGE_THREAD)?;
        for frame in 0..FRAMES {
            for word in ["some ", "words ", "of a ", "reply\n"] {
                tell(&mut model, u64::from(batch * FRAMES + frame) * 17, word);
            }
            draw(&mut painter, &model)?;
        }
        samples.push(
            cpu_time(UsageWho::RUSAGE_THREAD)?.saturating_sub(before).as_secs_f64() * 1e6 / f64::from(FRAMES),
        );
    }
    let row = Measurement::of("CPU per streaming frame, 200x50, 100,000 lines", "µs", &samples);
    let median = row.median / 1000.0;
    let mut report = BenchReport { rows: vec![row], ..BenchReport::default() };
    report.absolute("CPU per streaming frame, ms", median, 0.8);
    report.absolute("100,000 lines in the transcript, MiB", grown, 60.0);
    Ok(report)
}

fn draw(painter: &mut Painter, model: &Model) -> Result<(), BenchError> {
    painter.draw(|frame| {
        tui::view(model, frame);
    })?;
    Ok(())
}

fn tell(model: &mut Model, millis: u64, text: &str) {
    let kind = UiEventKind::TextDelta { text: text.to_owned() };
    let event = UiEvent { conversation_id: ConversationId(String::new()), agent: AgentId::root(), kind };
    tui::update(model, UiTime::from_millis(millis), Msg::Core(event));
}

fn model(setup: &BenchSetup) -> Result<Model, BenchError> {
    let standing = setup.sandbox().standing();
    Ok(Model::new(Start {
        history: Vec::new(),
        commands: Vec::new(),
        project: standing.project().clone(),
        activity: Activity::Execute,
        mode: ApprovalMode::Ask,
        net: Network::Off,
        rights: standing.summary(),
        tier: Some(Tier::Full),
        model: "measured".to_owned(),
        models: KnownModels::default(),
        window: Some(200_000),
        keymap: Keymap::new(&[])?,
        is_plain: false,
        status: tui::StatusWords::Full,
        capabilities: Capabilities {
            colour: Colour::Sixteen,
            theme: Some(ThemeName::default()),
            size: (SIZE.width, SIZE.height),
        },
        local_time: |_| String::new(),
        previews: Previews { prefix: |_| String::new(), pattern: |_| String::new() },
        unasked: Vec::new(),
        origins: Origins::default(),
    }))
}

/// Returns the resident memory of this process in MiB (`VmRSS`, `proc_pid_status(5)`).
fn resident() -> Result<f64, BenchError> {
    let text = fs::read_to_string("/proc/self/status")?;
    let value = text.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    Ok(value.ok_or("no VmRSS in status")?.parse::<f64>()? / 1024.0)
}
