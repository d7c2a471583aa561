// Drives `bailiwick acp` by the TypeScript SDK of the protocol (`@agentclientprotocol/sdk` on npm). Prints a row for
// each tested flow. Usage: node sdk.mjs MODEL_URL. Environment: BAILIWICK, the program. Exit status 1: a flow had
// another result than expected.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const { agent, client } = acp.methods;
const [url] = process.argv.slice(2);
const place = () => mkdtempSync(join(tmpdir(), "editor-"));

function same(one, other) {
    if (JSON.stringify(one) !== JSON.stringify(other)) {
        throw new Error(`${JSON.stringify(one)} is not ${JSON.stringify(other)}`);
    }
}

async function editor(run, { home = place(), flags = [], choose = "reject_once" } = {}) {
    const env = { PATH: process.env.PATH, HOME: home, ANTHROPIC_API_KEY: "x" };
    const server = spawn(process.env.BAILIWICK, ["acp", "--base-url", url, ...flags], { env, stdio: ["pipe", "pipe", "ignore"] });
    const exit = new Promise((done) => server.on("exit", done));
    const seen = { asked: [], updates: [], waiting: [], server, exit };
    const app = acp
        .client({ name: "real-editors" })
        .onRequest(client.session.requestPermission, ({ params }) => {
            seen.asked.push(params);
            const option = params.options.find((option) => option.kind === choose);
            return { outcome: { outcome: "selected", optionId: option.optionId } };
        })
        .onNotification(client.session.update, ({ params }) => {
            seen.updates.push(params);
            seen.waiting.forEach((check) => check());
        });
    const connection = app.connect(acp.ndJsonStream(Writable.toWeb(server.stdin), Readable.toWeb(server.stdout)));
    seen.agent = connection.agent;
    seen.text = (kind) => seen.updates.filter(({ update }) => update.sessionUpdate === kind).map(({ update }) => update.content.text).join("");
    seen.until = (kind) => new Promise((done) => seen.waiting.push(() => seen.updates.some(({ update }) => update.sessionUpdate === kind) && done()));
    seen.turn = async (sessionId, text) => (await seen.agent.request(agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] })).stopReason;
    seen.open = async (cwd) => (await seen.agent.request(agent.session.new, { cwd, mcpServers: [] })).sessionId;
    const hello = await seen.agent.request(agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
    same([hello.protocolVersion, hello.agentInfo.name], [1, "bailiwick"]);
    const said = await run(seen);
    server.stdin.end();
    same(await exit, 0);
    return said;
}

const flows = {
    "initialize, new, prompt": () => editor(async (seen) => {
        same(await seen.turn(await seen.open(place()), "#hello"), "end_turn");
        same(seen.text("agent_message_chunk"), "Hello from the model.");
        return "the reply came";
    }),
    "an edit approved": () => editor(async (seen) => {
        const project = place();
        same(await seen.turn(await seen.open(project), "#edit"), "end_turn");
        const diff = seen.asked[0].toolCall.content.find((part) => part.type === "diff");
        same(readFileSync(join(project, "hello.txt"), "utf8"), diff.newText);
        return "the diff that was shown is the file";
    }, { choose: "allow_once" }),
    "an edit denied": () => editor(async (seen) => {
        const project = place();
        same(await seen.turn(await seen.open(project), "#edit"), "end_turn");
        same([seen.asked.length, existsSync(join(project, "hello.txt"))], [1, false]);
        return "no file";
    }),
    "plan mode": () => editor(async (seen) => {
        const project = place();
        const sessionId = await seen.open(project);
        await seen.agent.request(agent.session.setMode, { sessionId, modeId: "plan" });
        same(await seen.turn(sessionId, "#plan"), "end_turn");
        same(readFileSync(join(project, "note.txt"), "utf8"), "noted\n");
        return "executed";
    }, { choose: "allow_once" }),
    "cancel in mid-stream": () => editor(async (seen) => {
        const sessionId = await seen.open(place());
        const running = seen.turn(sessionId, "#long");
        await seen.until("agent_message_chunk");
        await seen.agent.notify(agent.session.cancel, { sessionId });
        same(await running, "cancelled");
        return "cancelled";
    }),
    "load with history": async () => {
        const [home, project] = [place(), place()];
        const sessionId = await editor(async (seen) => {
            const opened = await seen.open(project);
            await seen.turn(opened, "#hello");
            return opened;
        }, { home });
        return editor(async (seen) => {
            await seen.agent.request(agent.session.load, { sessionId, cwd: project, mcpServers: [] });
            same([seen.text("user_message_chunk"), seen.text("agent_message_chunk")], ["#hello", "Hello from the model."]);
            return "the history came before the answer";
        }, { home });
    },
    "a mode is not widened": () => editor(async (seen) => {
        const sessionId = await seen.open(place());
        const error = await seen.agent.request(agent.session.setMode, { sessionId, modeId: "auto" }).catch((error) => error);
        same([error.code, error.data.word], [-32602, "option_refused"]);
        return "refused";
    }),
    "two sessions, a sub-agent": () => editor(async (seen) => {
        const [one, other] = [await seen.open(place()), await seen.open(place())];
        same(await Promise.all([seen.turn(one, "#hello"), seen.turn(other, "#delegate")]), ["end_turn", "end_turn"]);
        const calls = seen.updates.filter(({ update }) => update.sessionUpdate === "tool_call");
        same([calls.length, calls.every(({ sessionId }) => sessionId === other)], [3, true]);
        return "each update has its session";
    }),
};

const manifest = join(dirname(createRequire(import.meta.url).resolve("@agentclientprotocol/sdk")), "../../../package.json");
console.log(`| flow | \`@agentclientprotocol/sdk\` ${JSON.parse(readFileSync(manifest)).version}, Node ${process.versions.node} |\n| --- | --- |`);
let failed = 0;
for (const [name, run] of Object.entries(flows)) {
    const late = new Promise((_, fail) => setTimeout(() => fail(new Error("no end after 60 s")), 60_000).unref());
    const said = await Promise.race([run(), late]).catch((error) => ((failed = 1), `**failed**: ${error.message ?? error}`));
    console.log(`| ${name} | ${said} |`);
}
process.exit(failed);
