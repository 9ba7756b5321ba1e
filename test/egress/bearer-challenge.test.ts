import { expect, test } from 'vitest';
import { type BearerChallenge, readBearerChallenge } from '../../broker/egress/bearer-challenge.ts';

const NOTHING: BearerChallenge = { error: undefined, scopes: [], metadata: undefined };
const METADATA = 'https://mcp.example/.well-known/oauth-protected-resource/mcp';

test.each<[string | string[] | undefined, Partial<BearerChallenge>]>([
  [undefined, {}],
  ['Bearer', {}],
  [`Bearer resource_metadata="${METADATA}"`, { metadata: METADATA }],
  [
    `Bearer realm="x", error="insufficient_scope", scope="mcp:read  mcp:write", resource_metadata="${METADATA}", error_description="a, scope="none""`,
    { error: 'insufficient_scope', scopes: ['mcp:read', 'mcp:write'], metadata: METADATA },
  ],
  // Unquoted tokens, as some servers write them, without spaces.
  ['bearer error=insufficient_scope,scope=mcp:read', { error: 'insufficient_scope', scopes: ['mcp:read'] }],
  [['Basic realm="x"', 'Bearer ERROR="invalid_token"'], { error: 'invalid_token' }],
  // Not a member of the challenge, although its name ends like one.
  ['Bearer my_error="x", no-scope="y"', {}],
  ['Bearer scope=""', {}],
  [`Bearer scope="${'x'.repeat(201)} ok"`, { scopes: ['ok'] }],
  [`Bearer scope="${Array.from({ length: 101 }, (_, at) => `s${at}`).join(' ')}"`, {}],
  ['Bearer scope="a\u00e9"', {}],
])('%j', (header, read) => {
  expect(readBearerChallenge(header)).toEqual({ ...NOTHING, ...read });
});
