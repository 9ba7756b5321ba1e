/** Git for people: each request goes to the code host with the token of its person, and is refused without one. */
import { beforeEach, describe, expect, test } from 'vitest';
import { profileOf, run, sh } from '../sidecar/run-world.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { docsManifest, govern } from '../world/docs-platform.ts';
import { GIT_SCOPES, remoteOf, runGit } from '../world/git-world.ts';
import { confirmAll, consentAsserted, outlivePerson } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { startGitHost } from '../world/servers/git-host.ts';
import { newFolder, ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, shared } from '../world/world.ts';

describe.each(ONE_STORE)(`git for people on %s${postgresNote}`, (store) => {
  const host = shared(() => startGitHost({ takes: (password) => people.server.given.access.includes(password) }));
  const people = givenPeople(store, { reaches: () => [host.address] });
  const { server, world, organisation } = people;
  let agent: TestAgent;

  beforeEach(async () => {
    host.repository(`acme/app-${store}`);
    const docs = docsManifest(server) as { auth: object };
    const codehost = {
      use: 'github',
      base_url: host.url,
      git_base_url: host.url,
      auth: docs.auth,
      per_person: { enabled: true, asserted: ['slack'] },
    };
    const document = { platforms: { docs, codehost }, connections: { host: { platform: 'codehost' } } };
    await expectStatus(200, govern(organisation, document));
    agent = await organisation.agent({ rules: ALLOW_ALL, grants: { codehost: { scopeList: GIT_SCOPES } } });
    host.seen.length = 0;
  });

  const give = async (id: string, login: string) => {
    const { body } = await agent.post('/v1/consent/caller/start', { platform: 'codehost', caller: slack(id) });
    await consentAsserted(server, body.consent_url, login);
    await confirmAll(organisation);
  };
  const clone = async (id: string | undefined) => {
    const config = id === undefined ? {} : { 'http.extraHeader': `X-Svc-Caller: id slack:${id}` };
    return await runGit(['clone', '-q', remoteOf(agent, `acme/app-${store}`), newFolder()], { config });
  };
  /** Returns the accounts whose tokens the code host received, each once. */
  const whose = async (): Promise<string[]> => {
    const pairs = host.seen.map(({ headers }) => atob((headers.authorization ?? '').replace(/^Basic /, '')));
    const tokens = [...new Set(pairs.map((pair) => pair.slice(pair.indexOf(':') + 1)))];
    const answers = await Promise.all(
      tokens.map((token) => fetch(`${server.issuer}/api/items`, { headers: { authorization: `Bearer ${token}` } })),
    );
    return ((await Promise.all(answers.map((answer) => answer.json()))) as { who: string }[])
      .map(({ who }) => who)
      .sort();
  };

  test('two people clone concurrently, each with their own token; nobody else can', async () => {
    await give('U-ANN', 'ann');
    expect((await clone('U-BOB')).stderr).toContain('consent_required');
    expect((await clone(undefined)).stderr).toContain('consent_required');
    expect(host.seen).toEqual([]);
    await give('U-BOB', 'bob');
    expect(await clone('U-ANN')).toMatchObject({ code: 0 });
    expect(await whose()).toEqual(['ann']);
    host.seen.length = 0;
    expect((await Promise.all([clone('U-ANN'), clone('U-BOB')])).map(({ code, stderr }) => code || stderr)).toEqual([
      '',
      '',
    ]);
    expect(await whose()).toEqual(['ann', 'bob']);
    host.seen.length = 0;
    const url = `https://github.com/acme/app-${store}`;
    const ran = await run(profileOf(agent), ['--caller', 'slack:U-BOB', ...sh(`git clone -q ${url} "$HOME/clone"`)]);
    expect(ran, ran.stderr).toMatchObject({ code: 0 });
    expect(await whose()).toEqual(['bob']);
    // Expired: the token is refreshed first.
    host.seen.length = 0;
    await outlivePerson(world, organisation, 'ann@docs.example');
    expect(await clone('U-ANN')).toMatchObject({ code: 0 });
    expect(await whose()).toEqual(['ann']);
    // Revoked at the code host: only the person can connect it again, and no owner.
    await outlivePerson(world, organisation, 'bob@docs.example');
    server.instead = (path) => (path === '/token' ? { status: 400, body: '{"error":"invalid_grant"}' } : undefined);
    const { stderr } = await clone('U-BOB');
    server.instead = undefined;
    expect(stderr).toContain('upstream_auth_failed');
    expect(stderr).toContain('They have to consent again: begin that with POST /v1/consent/caller/start.');
    const ended = await organisation.ask('POST', '/owner/people/end', { caller: slack('U-ANN') });
    expect(ended.body.ended).toBe(1);
    host.seen.length = 0;
    expect((await clone('U-ANN')).stderr).toContain('consent_required');
    expect(host.seen).toEqual([]);
  });
});
