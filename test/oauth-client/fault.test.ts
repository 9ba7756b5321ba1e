/** What the log says about responses of authorization servers that cannot be used: which member is wrong, and never a text of the response. */
import * as client from 'openid-client';
import { expect, test } from 'vitest';
import type { Log } from '../../broker/log/log.ts';
import { problemOf } from '../../broker/oauth-client/fault.ts';
import { tokenFetch } from '../../broker/oauth-client/token-fetch.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

/** Returns what is logged about a response of the token endpoint. */
async function loggedOf(response: Response): Promise<string> {
  const issuer = 'https://id.example';
  const configuration = new client.Configuration({ issuer, token_endpoint: `${issuer}/token` }, 'me', undefined);
  const fetch = async () => response;
  configuration[client.customFetch] = tokenFetch(fetch, { tokenType: undefined, withoutIdToken: true });
  const lines: object[] = [];
  const log = { warn: (line: object) => lines.push(line) } as unknown as Log;
  const error: unknown = await client.refreshTokenGrant(configuration, 'refresh').catch((one: unknown) => one);
  expect(problemOf(error, 'docs', log)).toMatchObject({ problem: 'failed' });
  expect(lines).toHaveLength(1);
  return (lines[0] as { problem: string }).problem;
}

test.each<[string, Response, RegExp]>([
  [
    'a token without a type',
    Response.json({ access_token: 'CANARY-0123456789' }),
    /"token_type" property must be a string/,
  ],
  [
    'a type that is not bearer',
    Response.json({ access_token: 'CANARY-0123456789', token_type: 'CANARY' }),
    /`token_type`/,
  ],
  ['no token', Response.json({ token_type: 'bearer', x: 'CANARY' }), /"access_token" property must be a string/],
  ['an outage', new Response('CANARY', { status: 503 }), /status 503/],
  ['a page', new Response('<p>CANARY', { headers: { 'content-type': 'text/html' } }), /content-type \(status 200\)/],
  ['half a JSON', new Response('{"CANARY', { headers: JSON_TYPE }), /failed to parse/],
])('%s is named in the log', async (_name, response, says) => {
  const logged = await loggedOf(response);
  expect(logged).toMatch(says);
  expect(logged).not.toContain('CANARY');
});
