/** What the server says of itself when a client connects. Without the SDK: a client that starts it waits for this. */

export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

const INSTRUCTIONS =
  'Agent Broker governs what you may do on connected platforms. Every call is checked, recorded, and may be held until a person approves it. Read the answers: they say what to do next. When an answer says halted, stop. When it says pending_approval, show the person the link, do not submit the call again, and use check_approval.';

/** `tellsChanges`: whether there is a way on which the client can be told that the list of tools changed. */
export const introduction = (version: string, tellsChanges: boolean) => ({
  capabilities: {
    tools: { ...(tellsChanges && { listChanged: true }) },
    extensions: { [TASKS_EXTENSION]: {} },
  },
  serverInfo: { name: 'agent-broker', title: 'Agent Broker', version },
  instructions: INSTRUCTIONS,
});
