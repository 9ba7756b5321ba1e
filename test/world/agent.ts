/** An agent as its developer would write it: a key pair of its own, and a fresh token for each request. */
import { type KeyObject, sign } from 'node:crypto';
import { Agent, fetch as undiciFetch } from 'undici';
import { expect } from 'vitest';
import { expectDeclared } from './declared-routes.ts';
import { newRsaPair } from './rsa.ts';

export type KeyPair = { publicPem: string; privateKey: KeyObject };

export function makeKeyPair(): KeyPair {
  const { publicKey, privateKey } = newRsaPair();
  return { publicPem: publicKey.export({ format: 'pem', type: 'spki' }) as string, privateKey };
}

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Signs a token (RS256) with exactly these claims. */
export function signToken(
  claims: Record<string, unknown>,
  key: KeyObject,
  header: Record<string, unknown> = {},
): string {
  const input = `${encode({ alg: 'RS256', typ: 'JWT', ...header })}.${encode(claims)}`;
  return `${input}.${sign('sha256', Buffer.from(input), key).toString('base64url')}`;
}

export type Answer = {
  status: number;
  headers: Headers;
  /** Parsed when it is JSON, else the text. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
  body: any;
  text: string;
};

export class TestAgent {
  readonly baseUrl: string;
  readonly id: string;
  readonly agentId: string;
  readonly ownerId: string;
  keys: KeyPair;
  /** The clock for signing tokens, in milliseconds. */
  clock: () => number = Date.now;

  constructor(at: { baseUrl: string; id: string; agentId: string; ownerId: string; keys: KeyPair }) {
    this.baseUrl = at.baseUrl;
    this.id = at.id;
    this.agentId = at.agentId;
    this.ownerId = at.ownerId;
    this.keys = at.keys;
  }

  /** Returns a token valid for 60 seconds; `claims` are added or, when undefined, removed. */
  token(claims: Record<string, unknown> = {}, header: Record<string, unknown> = {}): string {
    const iat = Math.floor(this.clock() / 1000);
    const all = { agent_id: this.agentId, owner_id: this.ownerId, iat, exp: iat + 60, ...claims };
    return signToken(all, this.keys.privateKey, header);
  }

  /** Sends POST /v1/actions. Text and bytes are sent unchanged. */
  act(
    action: Record<string, unknown> | string | Uint8Array,
    headers: Record<string, string> = {},
    from?: string,
  ): Promise<Answer> {
    const body = typeof action === 'string' || action instanceof Uint8Array ? action : JSON.stringify(action);
    return this.request('POST', '/v1/actions', {
      body,
      headers: { 'content-type': 'application/json', ...headers },
      ...(from !== undefined && { from }),
    });
  }

  /** Makes a call that is held. Returns the id of its approval. */
  async hold(action: Record<string, unknown>): Promise<string> {
    return (await expectStatus(202, this.act(action))).body.approval_id;
  }

  /** Sends a body as JSON. */
  post(path: string, body: unknown, headers: Record<string, string> = {}, from?: string): Promise<Answer> {
    return this.request('POST', path, { ...jsonPost(body, headers), ...(from !== undefined && { from }) });
  }

  get(path: string, headers: Record<string, string> = {}, from?: string): Promise<Answer> {
    return this.request('GET', path, { headers, ...(from !== undefined && { from }) });
  }

  async request(
    method: string,
    path: string,
    options: { body?: string | Uint8Array; headers?: Record<string, string>; from?: string } = {},
  ): Promise<Answer> {
    const answer = await send(this.baseUrl + path, {
      method,
      ...(options.from !== undefined && { from: options.from }),
      headers: { authorization: `Bearer ${this.token()}`, ...options.headers },
      ...(options.body !== undefined && { body: options.body as string }),
    });
    expectDeclared(method, path, answer);
    return answer;
  }
}

/** A request with a body as JSON, or without a body where it is undefined. */
export const jsonRequest = (method: string, body?: unknown, headers: Record<string, string> = {}) => ({
  method,
  headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
  ...(body !== undefined && { body: JSON.stringify(body) }),
});

export const jsonPost = (body: unknown, headers: Record<string, string> = {}) => jsonRequest('POST', body, headers);

/** Sends one HTTP request and reads the whole answer. `from`: another loopback address, which stands in for another machine. */
export async function send(url: string, init: RequestInit & { from?: string }): Promise<Answer> {
  const { from, ...rest } = init;
  const dispatcher = from === undefined ? undefined : new Agent({ localAddress: from, pipelining: 0 });
  const target = from === undefined ? url : url.replace('//localhost:', '//127.0.0.1:');
  const response = (await undiciFetch(target, {
    redirect: 'manual',
    ...(rest as object),
    ...(dispatcher && { dispatcher }),
  })) as unknown as Response;
  const text = await response.text();
  await dispatcher?.close();
  let body: unknown = text;
  try {
    body = JSON.parse(text);
  } catch {}
  return { status: response.status, headers: response.headers, body, text };
}

/** Expects this status of an answer, and returns it. A failure shows the text. */
export async function expectStatus<T extends { status: number }>(status: number, asked: T | Promise<T>): Promise<T> {
  const answer = await asked;
  const text = 'text' in answer && typeof answer.text === 'string' ? answer.text : undefined;
  expect(answer.status, text).toBe(status);
  return answer;
}
