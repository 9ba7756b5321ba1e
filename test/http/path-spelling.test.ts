/** Another spelling of a path matches no route, so that checks by path cannot be bypassed. */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Route } from '../../broker/http/route.ts';
import { ROUTES } from '../../broker/http/routes.ts';
import { send } from '../world/agent.ts';
import { exchange } from '../world/raw.ts';
import { givenWorld, shared } from '../world/world.ts';

const SPELLINGS: Record<string, (path: string, route: Route) => string[]> = {
  'upper case': (path) => [path.toUpperCase()],
  'a capital': (path) => [`/${path.charAt(1).toUpperCase()}${path.slice(2)}`],
  'an escaped letter': (path) => [`/%${path.charCodeAt(1).toString(16)}${path.slice(2)}`],
  'an escaped slash': (path) => (path.lastIndexOf('/') > 0 ? [`/${path.slice(1).replace('/', '%2F')}`] : []),
  'an empty segment': (path) => [`/${path}`, path.replace(/(?<=.)\//, '//')].filter((one) => one !== path),
  'a dot': (path) => [`/.${path}`],
  'a folder up': (path) => [`/x/..${path}`, `/health/../${path.slice(1)}`],
  'an escaped folder up': (path) => [`/x/%2e%2e${path}`],
  'a backslash': (path) => [`/\\${path.slice(1)}`, `\\${path.slice(1)}`],
  'a slash at the end': (path, { takesRest }) => (takesRest ? [] : [`${path}/`]),
  'a parameter of the path': (path) => [`/;${path}`, path.replace(/(?<=.)\//, ';x/')].filter((one) => one !== path),
  'what is invisible': (path) => ['%00', '%09', '%20', '%e2%80%8b'].map((one) => `/${one}${path.slice(1)}`),
  'an absolute target': (path) => [`http://localhost${path.toUpperCase()}`, `http://localhost//${path.slice(1)}`],
};

describe('paths in another spelling', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent());
  let port: number;
  beforeAll(() => {
    port = Number(new URL(world.running.baseUrl).port);
  });
  beforeEach(() => world.forgive());

  /** One route per kind and first segment: they are matched in the same way. */
  const asked = new Map(
    ROUTES.filter(({ path }) => path !== '/').map((route) => [`${route.path.split('/')[1]} ${route.takesRest}`, route]),
  );

  test.each(Object.entries(SPELLINGS))('%s matches no route', async (_name, spell) => {
    const bearer = `Basic ${btoa(`x:${agent.token()}`)}`;
    const seen = new Set<string>();
    for (const route of asked.values()) {
      const path = route.path.replaceAll(/\{\w+\}/g, 'x1');
      for (const spelled of spell(path, route)) {
        const line = `${route.method} ${spelled}`;
        if (spelled === path || seen.has(line)) continue;
        seen.add(line);
        const answer = await exchange(
          port,
          `${line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: ${bearer}\r\n\r\n`,
        );
        expect([400, 404], `${line}: ${answer.head}`).toContain(answer.status);
        expect(answer.head, line).not.toMatch(/^www-authenticate/im);
        expect(answer.body, line).not.toContain('invalid_token');
      }
    }
    expect(seen.size).toBeGreaterThan(10);
    expect(world.upstream.seen).toEqual([]);
  });

  test('for a trailing slash the answer says how to correct it', async () => {
    const { baseUrl } = world.running;
    const told = async (path: string) => (await send(baseUrl + path, { method: 'POST' })).body.detail;
    expect(await told('/mcp/')).toBe('No such route. Leave out the slash at the end: /mcp.');
    expect(await told('/v1/actions/')).toBe('No such route. Leave out the slash at the end: /v1/actions.');
    for (const path of ['/mcp//', '/sse/', '/v1/', '/mcp%2f', '/v1/approvals/{id}/'])
      expect(await told(path)).toBe('No such route.');
  });
});
