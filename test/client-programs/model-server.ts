/**
 * A model on loopback for programs that need one: it calls the tool that it is to call, once, and then says what the tool answered. It
 * speaks the parts of four APIs that agent programs use: OpenAI's Chat Completions and Responses, Anthropic's Messages, Gemini's
 * generateContent, each as a stream and whole.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterFile } from '../world/after-file.ts';
import { chatCompletions, gemini, messages, responses } from './model-apis.ts';

/** What a model is given, whichever API it comes by. */
export type Given = {
  /** The names of the tools that it may call. */
  tools: string[];
  /** What the tools answered that it called, in this conversation. */
  results: string[];
};
export type Said = { call: { name: string; input: object } } | { text: string };
/** `path`: of the requests for it, after the address that the program is given. */
export type ModelApi = {
  path: RegExp;
  given(body: never): Given;
  /** `streams`: the events of the answer, each with its name where the API has names; else its only body. */
  say(said: Said, streams: boolean): { events: { name?: string; data: unknown }[] } | { body: unknown };
  streams(body: never, path: string): boolean;
};

export type ModelServer = {
  /** Without a path. */
  url: string;
  /** The tool that is called, if any: the first whose name ends so. */
  tool: string | undefined;
  input: object;
  /** What it says where it calls no tool. */
  words: string;
  /** Of each conversation that ended with an answer in words, what the tools had answered. */
  told: string[];
  /** What was asked for that none of the APIs has. */
  unknown: string[];
};

const APIS: ModelApi[] = [chatCompletions, responses, messages, gemini];

/** Qwen Code names the tools of MCP servers in a message, and has one tool that calls them. */
function callOf({ tool, input }: ModelServer, tools: readonly string[]) {
  if (tool === undefined) return undefined;
  const name = tools.find((one) => one.endsWith(tool));
  if (name !== undefined) return { name, input };
  const bridge = tools.find((one) => one === 'tool_call');
  return bridge === undefined
    ? undefined
    : { name: bridge, input: { name: `mcp__agent-broker__${tool}`, arguments: input } };
}

/** Starts one; it ends with the test file. */
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
    // Programs have models do other things than to answer, such as a title of the conversation, and give them no tools for it.
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
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  afterFile(
    () =>
      new Promise<void>((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  );
  model.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return model;
}
