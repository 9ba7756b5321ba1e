/** The client that the outside suite runs in its authorization scenarios: asks the test at CONTROL_URL to connect, and call, this server. */
const answer = await fetch(process.env.CONTROL_URL!, {
  method: 'POST',
  body: JSON.stringify({ url: process.argv.at(-1), context: JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}') }),
});
console.log(await answer.text());
process.exitCode = answer.ok ? 0 : 1;
