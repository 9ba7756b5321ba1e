/**
 * Path parameters that are not valid ids: each route answers, and no database gets a value that it cannot store. A thorough run sends each to
 * each route; otherwise each route gets two or three, since all routes use the same decoding.
 */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { ROUTES } from '../../broker/http/routes.ts';
import { jsonRequest, send } from '../world/agent.ts';
import { thorough } from '../world/runner/thorough.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';

const ODD = {
  NUL: '%00',
  'NUL in a text': 'a%00b',
  'no character at all': '%ED%A0%80',
  'a broken escape': '%zz',
  'a smile': '%F0%9F%98%80',
  'a quote': "'%20OR%201=1--",
  'a folder up': '%2e%2e',
  'a slash': 'a%2Fb',
  __proto__: '__proto__',
  'five thousand letters': 'x'.repeat(5_000),
};

describe.each(ONE_STORE)(`path parameters on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.organisation());
  const agent = shared(() => organisation.agent());

  test.each(Object.entries(ODD).map(([name, odd], place) => ({ name, odd, place })))(
    '$name',
    async ({ odd, place }) => {
      const { token } = mintOwnerSession(world.running.broker, organisation.owner);
      const routes = ROUTES.filter((route) => route.path.includes('{') && !route.takesRest);
      for (const { method, path, auth, body } of routes.filter((_, at) => thorough || at % 4 === place % 4)) {
        const answer = await send(world.running.baseUrl + path.replaceAll(/\{\w+\}/g, odd), {
          method,
          headers: {
            ...(auth !== 'none' && { authorization: `Bearer ${auth === 'agent' ? agent.token() : token}` }),
            ...(body && { 'content-type': 'application/json' }),
          },
          ...(body && { body: '{}' }),
        });
        // The operator's routes take no session; a chat service's request has no signature here, whatever the channel; and a parent folder may be another route.
        const refused = [
          400,
          403,
          404,
          ...(auth === 'local' || path.startsWith('/notify/') ? [401] : []),
          ...(odd === '%2e%2e' ? [401, 302] : []),
        ];
        expect(refused, `${method} ${path} ${answer.text}`).toContain(answer.status);
      }
    },
  );

  test('a path that cannot be decoded is answered by its route, like an unknown name', async () => {
    const at = (path: string, bearer?: string) =>
      fetch(world.running.baseUrl + path, { headers: bearer ? { authorization: `Bearer ${bearer}` } : {} });
    const told = async (answer: Response) => [
      answer.status,
      ((await answer.json()) as { error?: unknown }).error,
      answer.headers.get('access-control-allow-origin'),
      answer.headers.has('ratelimit'),
    ];
    for (const broken of ['%', '%zz', 'a%ffb', '%ED%A0%80']) {
      expect(await told(await at(`/agents/${broken}/did.json`))).toEqual([404, 'not_found', '*', true]);
      expect(await told(await at(`/v1/register/status/${broken}`))).toEqual([404, 'not_found', null, true]);
      expect(await told(await at(`/v1/approvals/${broken}`))).toEqual([401, 'missing_token', null, false]);
      expect(await told(await at(`/v1/approvals/${broken}?wait=0`, agent.token()))).toEqual([
        400,
        'invalid_id',
        null,
        true,
      ]);
      expect(await told(await at(`/v1/approvals/${broken}?wait=x`, agent.token()))).toEqual([
        400,
        'invalid_request',
        null,
        true,
      ]);
    }
  });

  test('a path of thousands of segments that cannot be decoded is not decoded segment by segment', async () => {
    const decode = vi.spyOn(globalThis, 'decodeURIComponent');
    onTestFinished(() => decode.mockRestore());
    expect((await fetch(`${world.running.baseUrl}${'/%z'.repeat(5_000)}`)).status).toBe(404);
    expect(decode.mock.calls.length).toBeGreaterThan(0);
    expect(decode.mock.calls.length).toBeLessThan(50);
  });

  test('control: valid bodies, where only the parameter is invalid', async () => {
    const { token } = mintOwnerSession(world.running.broker, organisation.owner);
    for (const [method, path, body] of [
      ['POST', '/owner/passkeys/%00/rename', { device_name: 'x' }],
      ['DELETE', '/owner/passkeys/%00', undefined],
      ['POST', '/owner/agents/%00/suspend', { reason: 'x' }],
      ['POST', '/owner/platforms/%00/suspend', {}],
      ['POST', '/owner/access-requests/%00/approve', { scopes: ['a'] }],
    ] as const) {
      const answer = await send(
        world.running.baseUrl + path,
        jsonRequest(method, body, { authorization: `Bearer ${token}` }),
      );
      expect([path, answer.status, answer.body.error]).toEqual([path, 404, 'not_found']);
    }
  });
});
