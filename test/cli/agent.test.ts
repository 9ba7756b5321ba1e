import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { CLIENTS } from '../../bin/clients/clients.ts';
import { mcpSnippets } from '../../bin/clients/mcp-snippets.ts';
import { jsonPost } from '../world/agent.ts';
import { commandHost, startServe } from '../world/command.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { newFolder } from '../world/stores.ts';

const folder = newFolder();
const data = join(folder, 'data');
/** The folder of a machine that runs only an agent: no data folder of a broker. */
const elsewhere = join(folder, 'elsewhere');

const hosted = commandHost();
const run = (words: readonly string[], env: Record<string, string> = {}, input?: string) =>
  hosted(words, { cwd: folder, env: { AGENT_BROKER_DATA: data, ...env }, ...(input !== undefined && { input }) });

let url = '';
let greeting = '';
let session = '';
beforeAll(async () => {
  // The tests create more agents than the limit of a minute.
  const env = { AGENT_BROKER_DATA: data, AGENT_BROKER_LIMIT_FACTOR: '10' };
  ({ url, greeting } = await startServe([], { cwd: folder, env }));
  session = (await run(['owner', 'token'])).stdout.trim();
});

test('a start without a terminal prints no sign-in link, and says how to get one', () => {
  expect(greeting).toContain(`${url}/console/sign-in\n`);
  expect(greeting).toContain('agent-broker owner link');
  expect(greeting).not.toMatch(/sgn_|within 15 minutes/);
});

const READS = 'sandbox=sandbox:issues.read,sandbox:mail.read';

/** Creates an agent and returns the printed JSON. */
async function create(name: string, ...words: string[]) {
  const { code, stdout, stderr } = await run(['agent', 'create', name, '--json', ...words]);
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout);
}

async function readIssues(profile: string): Promise<number> {
  const { stdout } = await run(['token', '--profile', profile]);
  const response = await fetch(
    `${url}/v1/actions`,
    jsonPost(
      { platform: 'sandbox', endpoint: '/issues', method: 'GET', scope: 'sandbox:issues.read' },
      { authorization: `Bearer ${stdout.trim()}` },
    ),
  );
  return response.status;
}

/** Sends a GET to the owner API with the session of this file. */
const owner = (path: string) => fetch(url + path, { headers: { authorization: `Bearer ${session}` } });
const agentNamed = async (name: string) => {
  const { agents } = (await (await owner('/owner/agents')).json()) as { agents: Record<string, string>[] };
  return agents.find((one) => one.name === name);
};

/** Runs `work` with the address of a proxy of the broker, in which `answer` replaces the answers to `/v1/agents/bind`. */
async function whenBinding<T>(
  answer: (passOn: () => Promise<Response>, response: ServerResponse) => unknown,
  work: (address: string) => Promise<T>,
): Promise<T> {
  const between = createServer(async (request, response) => {
    const { method = 'GET', headers } = request;
    const body = method === 'POST' ? Buffer.concat(await request.toArray()).toString() : undefined;
    const passOn = () =>
      fetch(url + request.url, {
        method,
        headers: {
          ...(headers.authorization && { authorization: headers.authorization }),
          ...(body && { 'content-type': 'application/json' }),
        },
        ...(body && { body }),
      });
    // The broker sends this header with each answer.
    response.setHeader('x-correlation-id', '0');
    if (request.url!.endsWith('/bind')) return await answer(passOn, response);
    const passed = await passOn();
    response.writeHead(passed.status, { 'content-type': 'application/json' });
    return response.end(await passed.text());
  });
  const port = await listenOnLoopback(between);
  try {
    return await work(`http://127.0.0.1:${port}`);
  } finally {
    between.closeAllConnections();
    await new Promise((done) => between.close(done));
  }
}

/** Adds to an unfinished profile the ids that `agent list` prints for its agent. Returns whether the broker knows the agent by this key. */
async function isKnownByIts(profile: string, name: string): Promise<boolean> {
  const { agent_id, owner_id } = (await agentNamed(name))!;
  writeFileSync(profile, JSON.stringify({ ...JSON.parse(readFileSync(profile, 'utf8')), url, agent_id, owner_id }));
  const { stdout } = await run(['doctor', '--profile', profile]);
  return /^ok {4}key /m.test(stdout);
}

test('git and npm leave out the default data folder, of a broker and of a machine with only an agent', async () => {
  const [project, machine] = [newFolder(), newFolder()];
  await startServe(['--no-sandbox'], { cwd: project, env: {} }, 'Console');
  const grants = ['--policy', 'sandbox', '--grant', READS];
  const words = ['agent', 'create', 'in a project', '--url', url, '--owner-token', session, ...grants];
  const made = await hosted(words, { cwd: machine, env: {} });
  expect(made.code, made.stderr).toBe(0);
  for (const [at, secret] of [
    [project, 'keys/master.key'],
    [machine, 'profiles/in-a-project.json'],
  ] as const) {
    expect(existsSync(join(at, '.agent-broker', secret))).toBe(true);
    writeFileSync(join(at, 'package.json'), '{"name":"project","version":"1.0.0"}');
    execFileSync('git', ['init', '-q'], { cwd: at });
    const files = execFileSync('git', ['ls-files', '--others', '--exclude-standard'], { cwd: at, encoding: 'utf8' });
    expect(files).toBe('package.json\n');
    const packed = execFileSync('npm', ['pack', '--dry-run', '--json'], { cwd: at, encoding: 'utf8' });
    expect(packed).not.toContain(secret);
  }
});

describe('agent create', () => {
  test('creates an agent that can call, with a profile that only its owner can read', async () => {
    const made = await create('triage', '--policy', 'sandbox', '--grant', READS);
    const path = join(data, 'profiles', 'triage.json');
    expect(made).toMatchObject({ name: 'triage', status: 'active', url, profile: path });
    expect(await agentNamed('triage')).toMatchObject({ agent_id: made.agent_id, owner_id: made.owner_id });
    if (process.platform !== 'win32') expect(statSync(path).mode & 0o777).toBe(0o600);
    const profile = JSON.parse(readFileSync(path, 'utf8'));
    expect(profile).toEqual({
      url,
      agent_id: made.agent_id,
      owner_id: made.owner_id,
      private_key: expect.stringContaining('-----BEGIN PRIVATE KEY-----'),
    });
    expect(await readIssues(path)).toBe(200);
  });

  test('prints the configuration of the chosen client, or how to connect one, and never the key', async () => {
    const out = join(folder, 'my agents', 'mail.json');
    const { code, stdout } = await run(['agent', 'create', 'mail helper', '--out', out]);
    expect(code).toBe(0);
    expect(stdout).toContain(`agent-broker connect CLIENT --profile '${out}'\nCLIENT is claude-code, `);
    expect(stdout).toContain('agent-broker doctor');
    expect(stdout.split('\n').length).toBeLessThan(9);
    const [line = ''] = stdout.split('\n').filter((one) => one.startsWith('{'));
    expect(JSON.parse(line).mcpServers['agent-broker']).toMatchObject({ env: { AGENT_BROKER_PROFILE: out } });
    for (const [client, ...words] of [
      ['codex', `codex mcp add agent-broker --env 'AGENT_BROKER_PROFILE=`],
      ['gemini', `gemini mcp add -s user -e 'AGENT_BROKER_PROFILE=`],
      ['vscode', '"servers": {', '"type": "stdio"', join('Code', 'User', 'mcp.json')],
      ['zed', '"context_servers": {', join('zed', 'settings.json')],
      ['continue', '- name: agent-broker', 'config.yaml'],
      ['opencode', '"type": "local"'],
    ] as const) {
      const path = join(folder, 'my agents', `${client}.json`);
      const one = await run(['agent', 'create', `for ${client}`, '--client', client, '--out', path]);
      expect([one.code, one.stderr]).toEqual([0, '']);
      for (const word of [path, ...words]) expect(one.stdout).toContain(word);
      expect(one.stdout).not.toMatch(/PRIVATE KEY|CLIENT is/);
    }
    const { snippets } = await create('all of them', '--out', join(folder, 'my agents', 'all.json'));
    expect(snippets).toHaveLength(CLIENTS.length);
    const texts = snippets.map(({ text }: { text: string }) => text).join('\n');
    for (const line of ["copilot mcp add --env 'AGENT_BROKER", "qwen mcp add -s user -e 'AGENT_BROKER"])
      expect(texts).toContain(line);
    expect((await run(['agent', 'create', 'x', '--client', 'emacs'])).code).toBe(2);
    expect(JSON.parse(readFileSync(out, 'utf8')).private_key).toContain('PRIVATE KEY');
  });

  test('does not overwrite an existing profile, and then creates no agent', async () => {
    const out = join(folder, 'kept.json');
    writeFileSync(out, 'mine');
    const { code, stderr } = await run(['agent', 'create', 'second', '--out', out]);
    expect([code, readFileSync(out, 'utf8')]).toEqual([1, 'mine']);
    expect(stderr).toContain('--out');
    expect(await agentNamed('second')).toBeUndefined();
  });

  test('leaves nothing behind when the broker refuses', async () => {
    for (const [name, ...words] of [
      ['sandbox-agent', '--out', join(folder, 'refused.json')],
      ['third', '--out', join(folder, 'refused.json'), '--policy', 'none-of-this-name'],
      ['third', '--out', join(folder, 'refused.json'), '--grant', 'sandbox=sandbox:everything'],
    ]) {
      const { code, stderr, stdout } = await run(['agent', 'create', name!, ...words]);
      expect([code, stdout], stderr).toEqual([1, '']);
      expect(stderr).toMatch(/already|policy|no platform|no scope/);
      expect(existsSync(join(folder, 'refused.json'))).toBe(false);
    }
    expect(await agentNamed('third')).toBeUndefined();
  });

  test('creates no agent when the profile cannot be written', async () => {
    const file = join(folder, 'a-file');
    writeFileSync(file, '');
    const { code, stderr } = await run(['agent', 'create', 'fourth', '--out', join(file, 'profile.json')]);
    expect(code).toBe(1);
    expect(stderr).toContain('cannot be written');
    expect(await agentNamed('fourth')).toBeUndefined();
  });

  test('a server that is not a broker is reported, and gets no owner session', async () => {
    const sent: unknown[] = [];
    const other = createServer(({ headers }, response) => {
      sent.push(headers.authorization);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
    });
    const port = await listenOnLoopback(other);
    const address = `http://127.0.0.1:${port}`;
    for (const words of [['agent', 'list'], ['inbox'], ['policy', 'list']]) {
      const { code, stderr } = await run([...words, '--url', address, '--owner-token', 'x']);
      expect([code, stderr]).toEqual([1, expect.stringMatching(/^The server at \S+ is not a broker/)]);
    }
    expect(sent).toEqual([undefined, undefined, undefined]);
  });

  test('a bootstrap token and a secret authorisation are made for an agent by its name', async () => {
    expect((await run(['agent', 'create', 'by name'])).code).toBe(0);
    const refused = await run(['agent', 'bootstrap', 'by name']);
    expect([refused.code, refused.stdout]).toEqual([1, '']);
    expect(refused.stderr).toContain('has its key already. Add --rotate');
    const made = await run(['agent', 'bootstrap', 'by name', '--rotate', '--json']);
    expect(made.code, made.stderr).toBe(0);
    expect(JSON.parse(made.stdout).bootstrap_token).toBeDefined();
    expect((await run(['agent', 'bootstrap', 'nobody'])).stderr).toContain('No agent has the name or id nobody');
    expect((await run(['secret', 'authorize', 'nobody', 'demo'])).stderr).toContain(
      'No agent has the name or id nobody',
    );
  });

  test('revokes the invite when binding the key fails', async () => {
    await whenBinding(
      (_passOn, response) => {
        response.writeHead(503, { 'content-type': 'application/json' });
        response.end('{"detail":"Not now."}');
      },
      async (address) => {
        const words = ['agent', 'create', 'fifth', '--url', address, '--owner-token', session];
        const { code, stderr } = await run(words);
        expect([code, stderr]).toEqual([1, 'Not now.\n']);
      },
    );
    expect(existsSync(join(data, 'profiles', 'fifth.json'))).toBe(false);
    expect(await (await owner('/owner/invites')).text()).not.toContain('fifth');
  });

  const cutOff = async (passOn: () => Promise<Response>, response: ServerResponse) => {
    expect((await passOn()).status).toBe(200);
    response.destroy();
  };

  test.each<[string, Parameters<typeof whenBinding>[0], RegExp]>([
    ['does not come', cutOff, /does not answer/],
    [
      'breaks off',
      async (passOn, response) => {
        const text = await (await passOn()).text();
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length });
        response.write(text.slice(0, 20), () => response.destroy());
      },
      /was incomplete/,
    ],
    [
      'says nothing of an agent',
      async (passOn, response) => {
        await passOn();
        response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      },
      /does not name the agent/,
    ],
    [
      'is that of a gateway',
      async (passOn, response) => {
        await passOn();
        response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>Not here</h1>');
      },
      /answered 404/,
    ],
  ])('keeps the key of a created agent when the answer %s', async (what, answer, words) => {
    const name = `lost ${what}`;
    const out = join(folder, `${name}.json`);
    const { code, stdout, stderr } = await whenBinding(answer, (address) =>
      run(['agent', 'create', name, '--out', out, '--url', address, '--owner-token', session]),
    );
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(words);
    expect(stderr).toContain(`${out} contains a key`);
    if (process.platform !== 'win32') expect(statSync(out).mode & 0o777).toBe(0o600);
    const unfinished = await run(['doctor', '--profile', out]);
    expect(unfinished.stdout).toContain(`doctor --profile ${out}`);
    expect(await isKnownByIts(out, name)).toBe(true);
  });

  test('keeps the next key of a working agent when the answer is lost', async () => {
    const { agent_id } = await create('outage', '--policy', 'sandbox', '--grant', READS);
    const { bootstrap_token } = JSON.parse((await run(['agent', 'bootstrap', agent_id, '--rotate', '--json'])).stdout);
    const out = join(folder, 'outage.json');
    const { code } = await whenBinding(cutOff, (address) =>
      run(['agent', 'create', 'outage', '--out', out, '--url', address, '--invite', bootstrap_token]),
    );
    expect(code).toBe(1);
    expect(await isKnownByIts(out, 'outage')).toBe(true);
  });

  test('keeps the key of an agent whose profile cannot be completed, and says what to add', async () => {
    const out = join(folder, 'unfinished.json');
    mkdirSync(`${out}.part`);
    const { code, stderr } = await run(['agent', 'create', 'unfinished', '--out', out]);
    const { agent_id, owner_id } = (await agentNamed('unfinished'))!;
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`"agent_id": "${agent_id}", "owner_id": "${owner_id}"`),
    ]);
    expect(await isKnownByIts(out, 'unfinished')).toBe(true);
  });

  test('AGENT_BROKER_URL works as --url: another broker needs a session of its own owner', async () => {
    const other = await run(['agent', 'create', 'mixed'], { AGENT_BROKER_URL: 'http://127.0.0.1:1' });
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('AGENT_BROKER_OWNER_TOKEN')]);
    expect(await agentNamed('mixed')).toBeUndefined();
    expect((await run(['agent', 'list'], { AGENT_BROKER_URL: `${url}/` })).code).toBe(0);
  });

  test('a name that a governance file cannot hold is refused before anything is created', async () => {
    for (const name of ['bad name !!', ' x', 'a'.repeat(65), 'e\u0301']) {
      const { code, stderr } = await run(['agent', 'create', name]);
      expect([code, stderr]).toEqual([2, expect.stringContaining('is not a valid agent name: write 1 to 64 letters')]);
    }
    expect(existsSync(join(data, 'profiles', 'bad-name.json'))).toBe(false);
  });

  test('with an invite, on a machine without an owner session: creates the agent, once', async () => {
    const invited = await run(['agent', 'invite', 'far away', '--policy', 'sandbox', '--grant', READS]);
    expect(invited.code, invited.stderr).toBe(0);
    const [secret] = /inv_\S+/.exec(invited.stdout)!;
    // The printed command is typed on the other machine as it is.
    const words = /^ {2}agent-broker (agent create .*)$/m.exec(invited.stdout)![1]!.split(' ');
    const far = { AGENT_BROKER_DATA: elsewhere };
    const { code, stdout, stderr } = await run([...words, '--json'], far);
    expect(code, stderr).toBe(0);
    const { profile } = JSON.parse(stdout);
    expect(profile).toBe(join(elsewhere, 'profiles', 'far-away.json'));
    expect(await readIssues(profile)).toBe(200);
    const again = await run(['agent', 'create', 'again', '--url', url, '--invite', secret], far);
    expect([again.code, existsSync(join(elsewhere, 'profiles', 'again.json'))]).toEqual([1, false]);
    expect(again.stderr).toContain('Ask an owner for another');
  });

  test('with a bootstrap token: replaces the agent’s key', async () => {
    const { agent_id, profile } = await create('renewed', '--policy', 'sandbox', '--grant', READS);
    const made = JSON.parse((await run(['agent', 'bootstrap', agent_id, '--rotate', '--json'])).stdout);
    const next = await create('renewed', '--out', join(folder, 'next.json'), '--invite', made.bootstrap_token);
    expect(next.agent_id).toBe(agent_id);
    expect([await readIssues(profile), await readIssues(next.profile)]).toEqual([401, 200]);
  });

  test.each([
    ['a grant without scopes', ['--grant', 'sandbox']],
    ['a grant without a platform', ['--grant', '=a']],
    ['an invite and what it should say', ['--invite', 'inv_x', '--policy', 'sandbox']],
    ['an invite that is none', ['--invite', 'sgn_x']],
  ])('exits 2 for %s', async (_what, words) => {
    const { code, stdout } = await run(['agent', 'create', 'nobody', ...words]);
    expect([code, stdout]).toEqual([2, '']);
    expect(existsSync(join(data, 'profiles', 'nobody.json'))).toBe(false);
  });

  test('on Windows npx runs through cmd, and a path with spaces is quoted', async () => {
    const windows = { platform: 'win32', environment: {}, home: 'C:\\Users\\Ann Lee', cwd: 'C:\\' } as const;
    const [code, desktop] = await mcpSnippets('C:\\Users\\Ann Lee\\p.json', { machine: windows });
    expect(code!.text).toBe(
      'claude mcp add agent-broker -e "AGENT_BROKER_PROFILE=C:\\Users\\Ann Lee\\p.json" -- cmd /c npx -y agent-broker mcp',
    );
    expect(JSON.parse(desktop!.text).mcpServers['agent-broker']).toEqual({
      command: 'cmd',
      args: ['/c', 'npx', '-y', 'agent-broker', 'mcp'],
      env: { AGENT_BROKER_PROFILE: 'C:\\Users\\Ann Lee\\p.json' },
    });
    const linux = { platform: 'linux', environment: {}, home: "/home/o'neil", cwd: '/' } as const;
    const [first] = await mcpSnippets("/home/o'neil/p.json", { machine: linux });
    expect(first!.text).toContain(`-e 'AGENT_BROKER_PROFILE=/home/o'\\''neil/p.json' --`);
  });
});

describe('secret authorize and secret send', () => {
  const OWN = 'own-secret-0123456789';
  const authorize = (agent: string, out: string, ...words: string[]) =>
    run(['secret', 'authorize', agent, 'sandbox', '--out', out, ...words]);

  test('the holder of the secret sends it once, without an owner session, and the secret is never printed', async () => {
    const { agent_id } = await create('with-its-own');
    const path = join(elsewhere, 'own.authorization.json');
    const made = await authorize(agent_id, path, '--scopes', 'sandbox:issues.read', '--label', 'own');
    expect(made.code, made.stderr).toBe(0);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const { authorization } = JSON.parse(readFileSync(path, 'utf8'));
    expect(made.stdout).not.toContain(authorization);
    const nothing = { AGENT_BROKER_DATA: join(elsewhere, 'none') };
    // Decoded with replacement characters it would be another secret, and would use up the authorisation.
    const latin1 = join(elsewhere, 'latin1');
    writeFileSync(latin1, Buffer.from('g\xfcltig\n', 'latin1'));
    const refused = await run(['secret', 'send', path, '--from', latin1], nothing);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      `The file ${latin1} is not text in UTF-8, from its line 1 on; save it in UTF-8.\n`,
    ]);
    const sent = await run(['secret', 'send', path], nothing, `${OWN}\n`);
    expect(sent.code, sent.stderr).toBe(0);
    expect(sent.stdout + sent.stderr).not.toContain(OWN);
    const again = await run(['secret', 'send', path], nothing, OWN);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('not a secret that was authorised')]);
    const listed = await owner('/owner/connections');
    const { connections } = (await listed.json()) as { connections: { label: string }[] };
    expect(connections.map(({ label }) => label)).toContain('own');
  });

  test('secret list prints an authorisation, and secret revoke withdraws it', async () => {
    const { agent_id } = await create('taken-back');
    const path = join(elsewhere, 'back.authorization.json');
    const words = ['--scopes', 'sandbox:issues.read', '--label', 'taken-back', '--json'];
    const { id } = JSON.parse((await authorize(agent_id, path, ...words)).stdout);
    const lines = (await run(['secret', 'list'])).stdout.split('\n');
    expect(lines.find((line) => line.startsWith(id))).toMatch(/ open .* taken-back on sandbox, .*, until 20/);
    expect((await run(['secret', 'revoke', id])).code).toBe(0);
    const again = await run(['secret', 'revoke', id]);
    expect([again.code, again.stderr]).toEqual([1, expect.stringMatching(/All of them: .* secret list\n$/)]);
    expect((await run(['secret', 'list'])).stdout).not.toContain(id);
    const sent = await run(['secret', 'send', path], {}, OWN);
    expect([sent.code, sent.stderr]).toEqual([1, expect.stringContaining('not a secret that was authorised')]);
  });

  test('an existing file is not overwritten, and then nothing is authorised', async () => {
    const { agent_id } = await create('not-overwritten');
    const path = join(folder, 'there.json');
    writeFileSync(path, '{}');
    const made = await authorize(agent_id, path, '--scopes', 'sandbox:issues.read', '--label', 'never');
    expect([made.code, made.stderr]).toEqual([1, expect.stringContaining('which is kept')]);
    expect(readFileSync(path, 'utf8')).toBe('{}');
    const listed = await owner('/owner/secret-authorizations');
    expect(await listed.text()).not.toContain('never');
    const wrong = await run(['secret', 'send', path], {}, OWN);
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('has no "url"')]);
  });
});

describe('doctor', () => {
  let profile = '';
  let agentId = '';
  beforeAll(async () => {
    ({ profile, agent_id: agentId } = await create('patient', '--policy', 'sandbox', '--grant', READS));
  });

  const doctor = async (env: Record<string, string> = {}, file: string | undefined = profile) => {
    const { code, stdout, stderr } = await run(['doctor', '--json', ...(file ? ['--profile', file] : [])], env);
    const { ok, checks } = JSON.parse(stdout) as {
      ok: boolean;
      checks: { check: string; result: string; detail: string; advice?: string }[];
    };
    expect([code, stderr]).toEqual([ok ? 0 : 1, '']);
    return { ok, checks, of: (name: string) => checks.find(({ check }) => check === name)! };
  };
  /** Writes the profile with some fields changed; returns its path. */
  const changed = (change: Record<string, unknown>): string => {
    const file = join(folder, 'changed.json');
    const text = JSON.stringify({ ...JSON.parse(readFileSync(profile, 'utf8')), ...change });
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  };
  const results = (checks: { check: string; result: string }[]) =>
    Object.fromEntries(checks.map(({ check, result }) => [check, result]));

  test('reports no problem, and prints what the agent may do', async () => {
    const { ok, checks, of } = await doctor();
    expect(ok).toBe(true);
    expect(results(checks)).toEqual({
      profile: 'ok',
      address: 'ok',
      // A warning, since this broker is on loopback, and whoever decides may use another machine.
      links: 'warning',
      clock: 'ok',
      key: 'ok',
      status: 'ok',
      grants: 'ok',
    });
    expect(of('links').advice).toContain('set BASE_URL');
    expect(of('grants').detail).toContain('sandbox: 2 scopes');
    expect((await run(['grant', 'change', agentId, 'sandbox', '--expires', '45m'])).code).toBe(0);
    expect((await doctor()).of('grants').detail).toMatch(/^sandbox: 2 scopes.*, for 4[45] min more$/);
    expect((await run(['grant', 'change', agentId, 'sandbox', '--expires', 'never'])).code).toBe(0);
    const { code, stdout } = await run(['doctor', '--profile', profile]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ok {4}status {3}patient is active$/m);
    expect(stdout).toMatch(/The agent can make calls\.\n$/);
  });

  test('reads the agent from the environment, too', async () => {
    const { agent_id, owner_id, private_key } = JSON.parse(readFileSync(profile, 'utf8'));
    const { ok, of } = await doctor(
      {
        AGENT_BROKER_URL: url,
        AGENT_BROKER_AGENT_ID: agent_id,
        AGENT_BROKER_OWNER_ID: owner_id,
        AGENT_BROKER_PRIVATE_KEY: private_key,
      },
      '',
    );
    expect([ok, of('profile').detail]).toEqual([true, `agent ${agentId}`]);
  });

  test('reports a missing profile, and a profile that others can read', async () => {
    const missing = join(folder, 'no-such.json');
    const none = await doctor({}, missing);
    expect(none.checks).toMatchObject([
      { check: 'profile', result: 'failed', detail: expect.stringContaining('no agent profile') },
    ]);
    expect(none.of('profile').advice).toMatch(/agent create NAME --out .*no-such\.json/);
    expect(none.of('profile').advice).toContain(missing);
    if (process.platform === 'win32') return;
    const open = changed({});
    chmodSync(open, 0o644);
    const { detail, advice } = (await doctor({}, open)).of('profile');
    expect(detail).toContain('chmod 600');
    // The profile is there: another agent would not help.
    expect(advice).toBeUndefined();
    chmodSync(open, 0o600);
  });

  test('reports an address where nothing answers, where another server answers, and a malformed address', async () => {
    let answer: [number, Record<string, string>, string];
    const server = createServer((_request, response) => {
      const [status, headers, body] = answer;
      response.writeHead(status, headers).end(body);
    });
    const port = await listenOnLoopback(server);
    const other = `http://127.0.0.1:${port}`;
    for (const [given, words, advice] of [
      [[200, {}, '<h1>Hello</h1>'], 'something else answers', 'Correct the address'],
      [
        [301, { location: 'https://broker.example/health' }, ''],
        'redirects to https://broker.example/',
        'final address',
      ],
      [
        [421, {}, '{"error":"misdirected_request","detail":"Use http://localhost:8787."}'],
        'that host name',
        'Use http://localhost',
      ],
      [[503, {}, '{"status":"unavailable","reasons":["the disk is full"]}'], 'accepts no calls now', 'disk is full'],
    ] as const) {
      answer = [...given];
      expect((await doctor({}, changed({ url: other }))).of('address')).toMatchObject({
        result: 'failed',
        detail: expect.stringContaining(words),
        advice: expect.stringContaining(advice),
      });
    }
    for (const [address, words] of [
      ['http://127.0.0.1:1', 'nothing answers'],
      ['localhost', 'no address'],
    ] as const) {
      const { ok, checks, of } = await doctor({}, changed({ url: address }));
      expect(ok).toBe(false);
      expect(of('address')).toMatchObject({ detail: expect.stringContaining(words), advice: expect.any(String) });
      expect(results(checks)).toMatchObject({ clock: 'skipped', key: 'skipped', status: 'skipped', grants: 'skipped' });
    }
  });

  test.each([
    [0, 'ok', undefined],
    [12, 'warning', /1[0-4] s behind/],
    // Tokens of 60 seconds are still accepted.
    [60, 'warning', /(58|59|6[0-2]) s behind/],
    [-60, 'failed', /(58|59|6[0-2]) s ahead/],
    [-3600, 'failed', /36\d\d s ahead|359\d s ahead/],
    [3600, 'failed', /36\d\d s behind|359\d s behind/],
  ] as const)('reports a broker clock that differs by %s s', async (seconds, result, words) => {
    // A proxy that changes only the Date header, as a machine with another clock would see it.
    const between = createServer(async (request, response) => {
      const { authorization } = request.headers;
      const answer = await fetch(url + request.url, { headers: { ...(authorization && { authorization }) } });
      const date = new Date(Date.now() + seconds * 1000).toUTCString();
      response.writeHead(answer.status, { date, 'content-type': 'application/json' });
      response.end(await answer.text());
    });
    const port = await listenOnLoopback(between);
    try {
      const address = `http://127.0.0.1:${port}`;
      const { ok, of } = await doctor({}, changed({ url: address }));
      expect([ok, of('clock').result]).toEqual([result !== 'failed', result]);
      if (words)
        expect(of('clock')).toMatchObject({
          detail: expect.stringMatching(words),
          advice: expect.stringContaining('NTP'),
        });
    } finally {
      between.closeAllConnections();
      await new Promise((done) => between.close(done));
    }
  });

  test('reports a malformed key, a key of another kind, a key that is too short, and another agent’s key', async () => {
    const pem = (key: { privateKey: import('node:crypto').KeyObject }) =>
      key.privateKey.export({ format: 'pem', type: 'pkcs8' });
    const rsa = (modulusLength: number) => pem(generateKeyPairSync('rsa', { modulusLength }));
    for (const [private_key, words] of [
      ['no key', 'PKCS#8'],
      ['-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n', 'damaged'],
      [pem(generateKeyPairSync('ec', { namedCurve: 'P-256' })), 'no RSA key but ec'],
      [rsa(1024), '1024 bits'],
      [rsa(2048), `does not know ${agentId} by this key`],
    ] as const) {
      const { checks, of } = await doctor({}, changed({ private_key }));
      expect(of('key')).toMatchObject({ result: 'failed', detail: expect.stringContaining(words) });
      expect(of('key').advice).toContain(`agent bootstrap ${agentId} --rotate`);
      expect(of('key').advice).toContain('agent create');
      expect(results(checks)).toMatchObject({ address: 'ok', status: 'skipped', grants: 'skipped' });
      expect(JSON.stringify(checks)).not.toContain('-----END');
    }
  });

  test('reports another owner’s id, and an unknown agent', async () => {
    const owner = await doctor({}, changed({ owner_id: '00000000-0000-4000-8000-000000000000' }));
    expect(owner.of('key')).toMatchObject({ result: 'failed', advice: expect.any(String) });
    const agent = await doctor({}, changed({ agent_id: 'agt_aaaaaaaaaaaaaaaaaaaa' }));
    expect(agent.of('key').detail).toContain('does not know agt_aaaaaaaaaaaaaaaaaaaa');
  });

  test('reports a grant on a platform without a connection that calls could use', async () => {
    const entry = {
      kind: 'rest',
      base_url: 'https://bare.example',
      auth: { type: 'bearer' },
      scopes: { 'bare:read': ['GET /x'] },
    };
    const made = await fetch(
      `${url}/owner/platforms`,
      jsonPost({ platform: 'bare', entry }, { authorization: `Bearer ${session}` }),
    );
    expect(made.status).toBe(201);
    const only = await create('unplugged', '--grant', 'bare=bare:read');
    const { ok, of } = await doctor({}, only.profile);
    expect([ok, of('grants').result, of('grants').advice]).toEqual([
      ...[false, 'failed', expect.stringContaining('no connection that they could use on bare')],
    ]);
    const both = await create('half-plugged', '--grant', READS, '--grant', 'bare=bare:read');
    const half = await doctor({}, both.profile);
    expect([half.ok, half.of('grants').result]).toEqual([true, 'warning']);
  });

  test('reports a connection whose credential the platform refused', async () => {
    const { agent_id, profile } = await create('refused', '--policy', 'sandbox', '--grant', READS);
    const { connections } = (await (await owner('/owner/connections')).json()) as {
      connections: { id: string; platform: string; default: boolean }[];
    };
    const { id } = connections.find((one) => one.platform === 'sandbox' && one.default)!;
    const replace = async (secret: string) => {
      const replaced = await fetch(`${url}/owner/connections/${id}/secret`, {
        method: 'POST',
        headers: { authorization: `Bearer ${session}`, 'content-type': 'application/json' },
        body: JSON.stringify({ secret }),
      });
      expect(replaced.status).toBe(200);
    };
    await replace('not-the-secret-0123456789');
    expect(await readIssues(profile)).toBe(409);
    const { ok, of } = await doctor({}, profile);
    expect([ok, of('grants').result, of('grants').advice]).toEqual([
      ...[
        true,
        'warning',
        expect.stringMatching(/refused at the last call on sandbox \(\S+\): ask an owner to connect it/),
      ],
    ]);
    await run(['agent', 'revoke', agent_id]);
  });

  test('reports an agent without grants, and a suspended agent', async () => {
    const idle = await create('idle');
    const nothing = await doctor({}, idle.profile);
    expect(nothing.of('grants')).toMatchObject({ result: 'failed', advice: expect.stringContaining('access-request') });
    await run(['agent', 'suspend', idle.agent_id, '--reason', 'Until Monday.']);
    const stopped = await doctor({}, idle.profile);
    expect(stopped.of('status')).toMatchObject({
      result: 'failed',
      detail: 'idle is suspended; suspended (owner_manual: Until Monday.)',
      advice: expect.stringContaining('ask the owner'),
    });
    expect(stopped.of('grants').result).toBe('skipped');
    const { code, stdout } = await run(['doctor', '--profile', idle.profile]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^FAIL {2}status {3}idle is suspended/m);
    expect(stdout).toMatch(/The agent cannot make calls yet\.\n$/);
  });
});
