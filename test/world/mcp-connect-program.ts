/** The client that the conformance suite runs in its scenarios: requests the test at CONTROL_URL to connect to this server and call it. */
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
