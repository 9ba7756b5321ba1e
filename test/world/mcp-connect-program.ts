/** The client that the outside suite runs in its scenarios: asks the test at CONTROL_URL to connect, and call, this server. */
const answer = await fetch(process.env.CONTROL_URL!, {
  method: 'POST',
  body: JSON.stringify({
    scenario: process.env.MCP_CONFORMANCE_SCENARIO,
    url: process.argv.at(-1),
    context: JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}'),
  }),
});
console.log(await answer.text());
process.exitCode = answer.ok ? 0 : 1;
