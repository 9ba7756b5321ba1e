/**
 * Fast start: answers `initialize` and the first `tools/list` before the MCP SDK is loaded. Some clients continue without the
 * tools of a server that lists them late, and loading the SDK is slow when several servers start concurrently. Anything but
 * these two requests, in this order, is handled by the SDK.
 */
import type { Readable, Writable } from 'node:stream';
import { listTools } from '../tools/catalog.ts';
import { introduction } from '../tools/introduction.ts';
import type { PermissionWatch } from '../tools/permission-watch.ts';
import { type Line, lineReader } from './lines.ts';

/** Four times the maximum size of a call, to leave room for JSON escapes. */
export const MAX_LINE_BYTES = 4 * 1024 * 1024;

/**
 * How long the list waits for the agent's permissions, from the start of the process, in milliseconds. If the broker answers
 * later, `tools/list_changed` follows.
 */
const LIST_DEADLINE_MS = 250;
const MIN_TIMEOUT_MS = 100;

/** Delay before loading the SDK after the tools were listed, so that concurrently starting servers can list theirs first. */
const LOAD_DELAY_MS = 500;

/** Handshake revisions that the SDK supports. */
export const HANDSHAKES: readonly unknown[] = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'];

/** The end of the input. `isGone`: the client reads no responses either, or the input failed. */
export type End = { error?: Error; isGone: boolean };
export type Over = (end: End) => void;

export type FirstLines = {
  /** The id of the `initialize` that was already answered here; the request is also among the passed lines. */
  greeted: string | number | undefined;
  /** Passes on the buffered lines, and each further one. `over`: the input has ended. */
  handOver(take: (line: Line) => void, over: Over): void;
  close(): void;
};

type Given = {
  version: string;
  permissions: PermissionWatch;
  /** Called once: when a message has to be handled by the SDK, or after the tools were listed. */
  load: (lines: FirstLines) => void;
};

type Request = { jsonrpc?: unknown; id?: unknown; method?: unknown; params?: Record<string, unknown> };

export function answerFirst(input: Readable, output: Writable, { version, permissions, load }: Given): void {
  const kept: Line[] = [];
  let taker: ((line: Line) => void) | undefined;
  let ended: End | undefined;
  let onOver: Over | undefined;
  let loading: NodeJS.Timeout | undefined;
  let state: 'new' | 'greeted' | 'listing' | 'loading' = 'new';

  const answer = (id: unknown, result: object) =>
    void output.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`);
  const loadNow = () => {
    clearTimeout(loading);
    if (state === 'loading') return;
    state = 'loading';
    load(lines);
  };
  /** After the end of the input: requests that were already received get their responses, as in `printf … | agent-broker mcp`. */
  const loadForRequests = () => {
    if (kept.some((line) => line.kind !== 'line' || isUnanswered(parsed(line.text)))) loadNow();
  };
  const isUnanswered = (request: Request | undefined) =>
    request === undefined || (request.id !== undefined && request.id !== lines.greeted);
  const list = async (id: unknown) => {
    state = 'listing';
    const known = await permissions.soon(Math.max(MIN_TIMEOUT_MS, LIST_DEADLINE_MS - performance.now()));
    if (ended?.isGone) return;
    answer(id, { tools: listTools(known) });
    if (ended) loadForRequests();
    else loading = setTimeout(loadNow, LOAD_DELAY_MS);
  };

  const take = (line: Line): void => {
    if (taker) {
      taker(line);
      return;
    }
    const request = state === 'loading' || line.kind !== 'line' ? undefined : parsed(line.text);
    if (state === 'new' && request && isHandshake(request)) {
      state = 'greeted';
      lines.greeted = request.id as string | number;
      const { protocolVersion } = request.params ?? {};
      answer(request.id, { protocolVersion, ...introduction(version, { tellsChanges: true, withTasks: false }) });
    } else if (state === 'greeted' && request && isFirstList(request)) {
      void list(request.id);
      return;
    } else if (state === 'new' || (state === 'greeted' && request?.method !== 'notifications/initialized')) loadNow();
    kept.push(line);
  };

  const read = lineReader(MAX_LINE_BYTES, take);
  const over: Over = (end) => {
    if (ended && !end.isGone) return;
    ended = end;
    clearTimeout(loading);
    if (onOver) onOver(end);
    else if (!end.isGone && state !== 'listing') loadForRequests();
  };
  const failed = (error: Error) => over({ error, isGone: true });
  const closed = () => over({ isGone: false });
  input.on('data', read);
  input.once('end', closed);
  input.once('close', closed);
  input.on('error', failed);
  // The client has disconnected: EPIPE is expected.
  output.on('error', () => over({ isGone: true }));

  const lines: FirstLines = {
    greeted: undefined,
    handOver: (onLine, whenOver) => {
      taker = onLine;
      onOver = whenOver;
      for (const line of kept.splice(0)) onLine(line);
      if (ended) whenOver(ended);
    },
    close: () => {
      input.off('data', read);
      input.pause();
    },
  };
}

function parsed(text: string): Request | undefined {
  try {
    return Object(JSON.parse(text)) as Request;
  } catch {
    return undefined;
  }
}

const isId = (id: unknown): boolean => typeof id === 'string' || (typeof id === 'number' && Number.isSafeInteger(id));

/** Whether the SDK would accept the request; otherwise the SDK answers it. */
function isHandshake({ jsonrpc, id, method, params }: Request): boolean {
  if (jsonrpc !== '2.0' || method !== 'initialize' || !isId(id)) return false;
  const { protocolVersion, capabilities, clientInfo, _meta } = Object(params);
  const { name, version } = Object(clientInfo);
  const isKnown = HANDSHAKES.includes(protocolVersion) && typeof name === 'string' && typeof version === 'string';
  return isKnown && typeof capabilities === 'object' && capabilities !== null && _meta === undefined;
}

/** Requests with `_meta` are excluded, which may have a progress token that the SDK has to handle. */
const isFirstList = ({ jsonrpc, id, method, params }: Request): boolean =>
  jsonrpc === '2.0' && method === 'tools/list' && isId(id) && Object.keys(Object(params)).length === 0;
