/** The parts of the model APIs that agent programs use. */
import type { ModelApi, Said } from './model-server.ts';

const USAGE = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
/** Returns the text of content that is a string or a list of parts. */
const textOf = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : [content ?? []]
        .flat()
        .map((part) => (part as { text?: string }).text ?? '')
        .join('');

/** https://platform.openai.com/docs/api-reference/chat */
export const chatCompletions: ModelApi = {
  path: /\/chat\/completions$/,
  given: (body: { messages: { role: string; content: unknown }[]; tools?: { function?: { name: string } }[] }) => ({
    tools: (body.tools ?? []).flatMap((tool) => tool.function?.name ?? []),
    results: body.messages.filter(({ role }) => role === 'tool').map(({ content }) => textOf(content)),
  }),
  streams: (body: { stream?: boolean }) => body.stream === true,
  say: (said, streams) => {
    const call = 'call' in said && {
      tool_calls: [
        {
          ...{ index: 0, id: 'call_1', type: 'function' },
          function: { name: said.call.name, arguments: JSON.stringify(said.call.input) },
        },
      ],
    };
    const message = { role: 'assistant', content: 'text' in said ? said.text : null, ...call };
    const finish = call ? 'tool_calls' : 'stop';
    const head = { id: 'chatcmpl-1', created: 1, model: 'model' };
    if (!streams)
      return {
        body: {
          ...head,
          object: 'chat.completion',
          choices: [{ index: 0, message, finish_reason: finish }],
          usage: USAGE,
        },
      };
    const chunk = (delta: object, finish_reason: string | null, more: object = {}) => ({
      data: { ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }], ...more },
    });
    return { events: [chunk(message, null), chunk({}, finish, { usage: USAGE }), { data: '[DONE]' }] };
  },
};

/** https://platform.openai.com/docs/api-reference/responses. Codex groups the tools of MCP servers in namespaces. */
export const responses: ModelApi = {
  path: /\/responses$/,
  given: (body: {
    input: { type?: string; output?: unknown }[];
    tools?: { type: string; name?: string; tools?: { name: string }[] }[];
  }) => ({
    tools: (body.tools ?? []).flatMap(({ name = '', tools }) =>
      tools ? tools.map((tool) => `${name}/${tool.name}`) : [name],
    ),
    results: [body.input]
      .flat()
      .filter(({ type }) => type === 'function_call_output')
      .map(({ output }) => textOf(output)),
  }),
  streams: (body: { stream?: boolean }) => body.stream === true,
  say: (said, streams) => {
    const item = itemOf(said);
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
    const whole = { id: 'resp_1', object: 'response', created_at: 1, model: 'model', status: 'completed', usage };
    const body = { ...whole, output: [item] };
    if (!streams) return { body };
    const events = [
      { type: 'response.created', response: { ...whole, status: 'in_progress', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: body },
    ];
    return { events: events.map((data, at) => ({ name: data.type, data: { sequence_number: at, ...data } })) };
  },
};

function itemOf(said: Said): object {
  if ('text' in said)
    return {
      ...{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed' },
      content: [{ type: 'output_text', text: said.text, annotations: [] }],
    };
  const [namespace, name] = said.call.name.includes('/') ? said.call.name.split('/') : [undefined, said.call.name];
  return {
    ...{ type: 'function_call', id: 'fc_1', call_id: 'call_1', status: 'completed' },
    ...{ name, namespace, arguments: JSON.stringify(said.call.input) },
  };
}

/** https://platform.claude.com/docs/en/api/messages */
export const messages: ModelApi = {
  path: /\/v1\/messages$/,
  given: (body: { messages: { content: unknown }[]; tools?: { name: string }[] }) => ({
    tools: (body.tools ?? []).map(({ name }) => name),
    results: body.messages
      .flatMap(({ content }) => (Array.isArray(content) ? content : []))
      .filter(({ type }) => type === 'tool_result')
      .map(({ content }) => textOf(content)),
  }),
  streams: (body: { stream?: boolean }) => body.stream === true,
  say: (said, streams) => {
    const usage = { input_tokens: 1, output_tokens: 1 };
    const block =
      'call' in said
        ? { type: 'tool_use', id: 'toolu_1', name: said.call.name, input: said.call.input }
        : { type: 'text', text: said.text };
    const stop_reason = 'call' in said ? 'tool_use' : 'end_turn';
    const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'model', stop_sequence: null, usage };
    if (!streams) return { body: { ...head, content: [block], stop_reason } };
    const delta =
      'call' in said
        ? { type: 'input_json_delta', partial_json: JSON.stringify(said.call.input) }
        : { type: 'text_delta', text: said.text };
    const events = [
      { type: 'message_start', message: { ...head, content: [], stop_reason: null } },
      {
        type: 'content_block_start',
        index: 0,
        content_block: { ...block, ...('call' in said ? { input: {} } : { text: '' }) },
      },
      { type: 'content_block_delta', index: 0, delta },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage },
      { type: 'message_stop' },
    ];
    return { events: events.map((data) => ({ name: data.type, data })) };
  },
};

/** https://ai.google.dev/api/generate-content */
export const gemini: ModelApi = {
  path: /:(?:streamG|g)enerateContent$/,
  given: (body: {
    contents: { parts?: { functionResponse?: { response: unknown } }[] }[];
    tools?: { functionDeclarations?: { name: string }[] }[];
  }) => ({
    tools: (body.tools ?? []).flatMap(({ functionDeclarations = [] }) => functionDeclarations.map(({ name }) => name)),
    results: body.contents
      .flatMap(({ parts = [] }) => parts)
      .flatMap(({ functionResponse }) => (functionResponse ? JSON.stringify(functionResponse.response) : [])),
  }),
  streams: (_body: never, path: string) => path.endsWith(':streamGenerateContent'),
  say: (said, streams) => {
    const part =
      'call' in said ? { functionCall: { name: said.call.name, args: said.call.input } } : { text: said.text };
    const body = {
      candidates: [{ index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    };
    return streams ? { events: [{ data: body }] } : { body };
  },
};
