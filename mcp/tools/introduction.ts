/** The server's description of itself for a client that connects. Independent of the SDK, because a client that starts the server waits for this. */

export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

const INSTRUCTIONS =
  'Agent Broker governs what you may do on connected platforms. Every call is checked, recorded, and may be held until a person approves it. Read the answers: they say what to do next. When an answer says halted, stop. When it says pending_approval, show the person the link, do not submit the call again, and use check_approval.';

/**
 * `tellsChanges`: whether the transport can notify the client that the list of tools changed. `withTasks`: whether held calls can become tasks. A client
 * accepts that in each request, which only revision 2026-07-28 lets it do: in the handshake of earlier revisions, clients would show tasks that never come.
 */
export const introduction = (
  version: string,
  { tellsChanges, withTasks }: { tellsChanges: boolean; withTasks: boolean },
) => ({
  capabilities: {
    tools: { ...(tellsChanges && { listChanged: true }) },
    ...(withTasks && { extensions: { [TASKS_EXTENSION]: {} } }),
  },
  serverInfo: { name: 'agent-broker', title: 'Agent Broker', version },
  instructions: INSTRUCTIONS,
});
