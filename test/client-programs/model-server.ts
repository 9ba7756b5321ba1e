/**
 * A scripted model on loopback for programs that need one: it calls the configured tool once, and then returns the tool's answer as text. It
 * implements the parts of four APIs that agent programs use: OpenAI's Chat Completions and Responses, Anthropic's Messages, Gemini's
 * generateContent, each streamed and not streamed.
 */
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { listenOnLoopback } from '../world/listen.ts';
import { chatCompletions, gemini, messages, responses } from './model-apis.ts';

/** The input of a model, independent of the API. */
export type Given = {
  /** The names of the tools that the model may call. */
  tools: string[];
  /** The results of the tool calls in this conversation. */
  results: string[];
};
export type Said = { call: { name: string; input: object } } | { text: string };
/** `path` matches the request path below the base URL that the program is given. */
export type ModelApi = {
  path: RegExp;
  given(body: never): Given;
  /** Returns the events of a streamed answer, with names where the API has them, or the body of an answer that is not streamed. */
  say(said: Said, streams: boolean): { events: { name?: string; data: unknown }[] } | { body: unknown };
  streams(body: never, path: string): boolean;
};

export type ModelServer = {
  /** The base URL, without a path. */
  url: string;
  /** The model calls the first tool whose name ends with this; undefined: it calls none. */
  tool: string | undefined;
  input: object;
  /** The text that the model answers when it calls no tool. */
  words: string;
  /** The tool results of each conversation that ended with a text answer. */
  told: string[];
  /** Requests that match none of the APIs. */
  unknown: string[];
};

const APIS: ModelApi[] = [chatCompletions, responses, messages, gemini];

/** Returns the tool call to make. Qwen Code lists the tools of MCP servers in a message, and calls them with a single tool, `tool_call`. */
function callOf({ tool, input }: ModelServer, tools: readonly string[]) {
  if (tool === undefined) return undefined;
  const name = tools.find((one) => one.endsWith(tool));
  if (name !== undefined) return { name, input };
  const bridge = tools.find((one) => one === 'tool_call');
  return bridge === undefined
    ? undefined
    : { name: bridge, input: { name: `mcp__agent-broker__${tool}`, arguments: input } };
}

/** Starts a model server, which is stopped after the test file. */
export async function startModelServer(): Promise<ModelServer> {
  const model: ModelServer = { url: '', tool: undefined, input: {}, words: 'Nothing to do.', told: [], unknown: [] };
  const server = createServer(async (request, response) => {
    const path = (request.url ?? '').replace(/\?.*$/s, '');
    const api = APIS.find((one) => one.path.test(path));
    if (api === undefined || request.method !== 'POST') {
      model.unknown.push(`${request.method} ${request.url}`);
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":{"message":"Not found"}}');
      return;
    }
    const body = (await json(request)) as never;
    const { tools, results } = api.given(body);
    // Programs also use models for other tasks, such as a title of the conversation, and pass no tools then.
    const call = results.length === 0 ? callOf(model, tools) : undefined;
    const said: Said = call
      ? { call }
      : { text: results.length === 0 ? model.words : `The tool said: ${results.join('\n')}` };
    if (results.length > 0) model.told.push(results.join('\n'));
    const answer = api.say(said, api.streams(body, path));
    if ('body' in answer) {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const { name: event, data } of answer.events)
      response.write(
        `${event === undefined ? '' : `event: ${event}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`,
      );
    response.end();
  });
  const port = await listenOnLoopback(server);
  model.url = `http://127.0.0.1:${port}`;
  return model;
}
