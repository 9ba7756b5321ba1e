/** A hand-written OAuth client, for tests that do what no library would. */
import { createHash, randomBytes } from 'node:crypto';
import { type Answer, jsonPost, send } from './agent.ts';
import type { Browser } from './browser/browser.ts';
import { CALLBACK, consent } from './mcp/person.ts';
import type { World } from './world.ts';

export type Pair = { verifier: string; challenge: string };

export function pkce(): Pair {
  const verifier = randomBytes(32).toString('base64url');
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') };
}

type Form = Record<string, string | undefined>;

export class OAuthClient {
  readonly baseUrl: string;
  id = '';
  pair = pkce();
  constructor(world: World, baseUrl = world.running.baseUrl) {
    this.baseUrl = baseUrl;
  }

  async register(metadata: Record<string, unknown> = {}): Promise<Answer> {
    const answer = await send(
      `${this.baseUrl}/oauth/register`,
      jsonPost({ client_name: 'Raw', redirect_uris: [CALLBACK], ...metadata }),
    );
    this.id = answer.body?.client_id ?? '';
    return answer;
  }

  /** Returns the authorization request's address; a value of undefined omits the parameter. */
  address(changed: Form = {}): string {
    const parameters: Form = {
      client_id: this.id,
      redirect_uri: CALLBACK,
      response_type: 'code',
      scope: 'mcp:read mcp:write',
      state: 'state-1',
      resource: `${this.baseUrl}/mcp`,
      code_challenge: this.pair.challenge,
      code_challenge_method: 'S256',
      ...changed,
    };
    return `${this.baseUrl}/oauth/authorize?${formOf(parameters)}`;
  }

  async post(path: string, form: Form, headers: Record<string, string> = {}): Promise<Answer> {
    return await send(`${this.baseUrl}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: formOf(form),
    });
  }

  redeem(code: string, changed: Form = {}): Promise<Answer> {
    const { id, pair } = this;
    const form = {
      grant_type: 'authorization_code',
      client_id: id,
      redirect_uri: CALLBACK,
      code_verifier: pair.verifier,
    };
    return this.post('/oauth/token', { ...form, code, ...changed });
  }

  refresh(token: string, changed: Form = {}): Promise<Answer> {
    return this.post('/oauth/token', {
      grant_type: 'refresh_token',
      client_id: this.id,
      refresh_token: token,
      ...changed,
    });
  }

  /** Registers and consents. Returns a code. */
  async code(browser: Browser, changed: Form = {}, decision: Record<string, unknown> = {}): Promise<string> {
    if (this.id === '') await this.register();
    const back = await consent(browser, this.address(changed), decision);
    const code = back.get('code');
    if (code === null) throw new Error(`no code: ${back}`);
    return code;
  }

  /** Goes all the way to tokens. */
  async tokens(browser: Browser, changed: Form = {}, decision: Record<string, unknown> = {}) {
    const answer = await this.redeem(await this.code(browser, changed, decision));
    if (answer.status !== 200) throw new Error(`no tokens: ${answer.status} ${answer.text}`);
    return answer.body as { access_token: string; refresh_token: string; scope: string; expires_in: number };
  }
}

const formOf = (form: Form): string =>
  new URLSearchParams(
    Object.entries(form).filter((pair): pair is [string, string] => pair[1] !== undefined),
  ).toString();

/** Sends a message to /mcp, like a client after `initialize`. */
export async function callMcp(
  baseUrl: string,
  token: string | undefined,
  message: Record<string, unknown> = { method: 'tools/list' },
  headers: Record<string, string> = {},
): Promise<Answer> {
  return await send(
    `${baseUrl}/mcp`,
    jsonPost(
      { jsonrpc: '2.0', id: 1, ...message },
      {
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2025-11-25',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...headers,
      },
    ),
  );
}
