/** Tools as they are installed, run by `agent-broker run`; one that is not installed is left out, and says so. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { github } from '../../broker/platforms/builtin/github.ts';
import { kubernetes } from '../../broker/platforms/builtin/kubernetes.ts';
import { npm } from '../../broker/platforms/builtin/npm.ts';
import { GIT_ENVIRONMENT } from '../world/git-host.ts';
import { type GitWorld, startGitWorld } from '../world/git-world.ts';
import { newFolder } from '../world/stores.ts';
import { ALLOW_ALL, CANARY, type Organisation, startWorld, type World } from '../world/world.ts';
import { profileOf, run, sh } from './run-world.ts';
import { onlyWith, pythonPath } from './tls-world.ts';

const MANIFESTS = { codehost: github, npm, kubernetes };
type Answers = Record<string, unknown>;

describe('tools', () => {
  let world: World;
  let profile: string;
  let organisation: Organisation;
  beforeAll(async () => {
    world = await startWorld();
    organisation = await world.organisation();
    for (const [id, manifest] of Object.entries(MANIFESTS))
      await organisation.platform({ id, manifest: { ...manifest, base_url: world.upstream.url } });
    await organisation.platform({
      id: 'pypi',
      manifest: { base_url: `${world.upstream.url}/simple`, scopes: { 'pypi:read': ['GET /**'] } },
    });
    const grants = Object.entries(MANIFESTS).map(([id, { scopes }]) => [id, { scopeList: Object.keys(scopes) }]);
    const all = { ...Object.fromEntries(grants), pypi: { scopeList: ['pypi:read'] } };
    profile = profileOf(await organisation.agent({ rules: ALLOW_ALL, grants: all }));
  });
  afterEach(() => {
    // Whatever came, came from the broker.
    const keys = world.upstream.seen.map(({ headers }) => headers.authorization);
    expect(keys.length).toBeGreaterThan(0);
    expect(new Set(keys)).toEqual(new Set([`Bearer ${CANARY}`]));
    world.upstream.seen.length = 0;
    world.upstream.answer = undefined;
  });

  /** Answers by path, with JSON or bytes. */
  function answerWith(answers: Answers, more?: (request: IncomingMessage, response: ServerResponse) => void): void {
    world.upstream.answer = (request, response) => {
      const found = answers[request.url ?? ''] ?? answers[(request.url ?? '').replace(/\?.*$/s, '')];
      more?.(request, response);
      response.setHeader('content-type', Buffer.isBuffer(found) ? 'application/octet-stream' : 'application/json');
      response.writeHead(found === undefined ? 404 : 200);
      response.end(Buffer.isBuffer(found) ? found : JSON.stringify(found ?? {}));
    };
  }

  onlyWith('gh', '--version')('gh asks the API, page by page, with REST and GraphQL', async () => {
    const issues = [{ title: 'one' }];
    const graphql = { data: { viewer: { login: 'octo' } } };
    const path = '/repos/acme/app/issues';
    answerWith({ [path]: issues, '/graphql': graphql }, ({ url }, response) => {
      if (url?.startsWith(path) && !url.includes('&page=2'))
        response.setHeader('link', `<${world.upstream.url}${path}?per_page=100&page=2>; rel="next"`);
    });
    const ended = await run(
      profile,
      sh(`gh api --paginate repos/acme/app/issues --jq '.[].title' && gh api graphql -f query='{ viewer { login } }'`),
    );
    expect(ended, ended.stderr).toMatchObject({ code: 0, stderr: '' });
    expect(ended.stdout).toBe(`one\none\n${JSON.stringify(graphql)}`);
    expect(world.upstream.seen.map(({ method, target }) => `${method} ${target}`)).toEqual([
      `GET ${path}?per_page=100`,
      `GET ${path}?per_page=100&page=2`,
      'POST /graphql',
    ]);
  });

  test('an address in an answer leads through the sidecar again', async () => {
    world.upstream.answer = (_, response) => {
      response.writeHead(301, { location: `${world.upstream.url}/repositories/7` });
      response.end();
    };
    const ended = await run(
      profile,
      sh(
        'curl -sS -o /dev/null -w "%{redirect_url}" -H "Authorization: token $GH_TOKEN" "$GITHUB_API_URL/repos/acme/app"; echo; echo "$GITHUB_API_URL"',
      ),
    );
    const [redirected, api] = ended.stdout.split('\n');
    expect(api).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/proxy\/codehost-main$/);
    expect(redirected).toBe(`${api}/repositories/7`);
  });

  test('the Unix socket is its user’s alone, asks for the placeholder, too, and is gone with the rest', async () => {
    answerWith({ '/user': { login: 'octo' } });
    const temporary = newFolder();
    const ended = await run(
      profile,
      sh(`cd "$(dirname "$GH_CONFIG_DIR")"; stat -c %a . socket gh/config.yml npmrc
        ask() { curl -sS -o /dev/null -w '%{http_code}\\n' "$@"; }
        ask --unix-socket socket http://api.github.com/user
        ask --unix-socket socket -H "Authorization: token $GH_TOKEN" http://api.github.com/user
        ask --unix-socket socket -H "Authorization: token $GH_TOKEN" http://evil.example/user
        ask -H "Host: api.github.com" -H "Authorization: token $GH_TOKEN" "$AGENT_BROKER_RUN_URL/user"`),
      { TMPDIR: temporary },
    );
    expect(ended.stdout.split('\n')).toEqual(['700', '600', '600', '600', '401', '200', '403', '403', '']);
    expect(readdirSync(temporary)).toEqual([]);
  });

  onlyWith('npm', '--version')('npm installs a package', async () => {
    const folder = newFolder();
    mkdirSync(join(folder, 'package'));
    writeFileSync(join(folder, 'package/package.json'), '{"name":"left","version":"1.0.0"}');
    execFileSync('tar', ['-czf', 'left.tgz', 'package'], { cwd: folder });
    const bytes = readFileSync(join(folder, 'left.tgz'));
    const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
    const dist = { tarball: `${world.upstream.url}/left/-/left-1.0.0.tgz`, integrity };
    answerWith({
      '/left': {
        name: 'left',
        'dist-tags': { latest: '1.0.0' },
        versions: { '1.0.0': { name: 'left', version: '1.0.0', dist } },
      },
      '/left/-/left-1.0.0.tgz': bytes,
    });
    const ended = await run(
      profile,
      sh('echo "{}" > package.json; npm install --no-audit --no-fund left && cat node_modules/left/package.json'),
      { npm_config_update_notifier: 'false' },
    );
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    expect(ended.stdout).toContain('"name":"left"');
    expect(world.upstream.seen.map(({ target }) => target)).toEqual(['/left', '/left/-/left-1.0.0.tgz']);
  });

  const python = pythonPath() ?? 'python3';
  onlyWith(
    python,
    '-m',
    'pip',
    '--version',
  )('pip installs a wheel, and is refused another', async () => {
    const wheel = (name: string) => `${name}-1.0-py3-none-any.whl`;
    const make = `
import sys, zipfile
for name in ['left', 'secret']:
    with zipfile.ZipFile(f'{name}-1.0-py3-none-any.whl', 'w') as wheel:
        wheel.writestr(f'{name}.py', f'print("{name} is there")')
        info = f'{name}-1.0.dist-info'
        wheel.writestr(f'{info}/METADATA', f'Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n')
        wheel.writestr(f'{info}/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
        wheel.writestr(f'{info}/RECORD', '')`;
    const folder = newFolder();
    execFileSync(python, ['-c', make], { cwd: folder });
    world.upstream.answer = ({ url = '' }, response) => {
      const [, name = '', file] = /^\/simple\/(?:(\w+)\/|files\/(.+))$/.exec(url) ?? [];
      if (file) return void response.writeHead(200).end(readFileSync(join(folder, file)));
      response.writeHead(200, { 'content-type': 'text/html' });
      response.end(`<!DOCTYPE html><html><body><a href="../files/${wheel(name)}">${wheel(name)}</a></body></html>`);
    };
    const rules = [...ALLOW_ALL, { effect: 'deny', endpoints: [`/files/${wheel('secret')}`] }];
    const limited = await organisation.agent({ rules, grants: { pypi: { scopeList: ['pypi:read'] } } });
    const ended = await run(
      profileOf(limited),
      sh(`pip() { ${python} -m pip --disable-pip-version-check "$@"; }
        pip install --quiet --no-deps --target there left; PYTHONPATH=there ${python} -m left
        pip install --quiet --no-deps --target there secret || ls there`),
      // Settings of the machine would name other indexes.
      { PIP_CONFIG_FILE: '/dev/null', PIP_ROOT_USER_ACTION: 'ignore', PIP_EXTRA_INDEX_URL: 'http://127.0.0.1:9/' },
    );
    expect(ended.stdout, ended.stderr).toMatch(/^left is there\n/);
    expect(ended.stdout).not.toContain('secret');
    expect(ended.stderr).toContain('403');
    expect(world.upstream.seen.map(({ target }) => target)).toEqual([
      '/simple/left/',
      `/simple/files/${wheel('left')}`,
      '/simple/secret/',
    ]);
  });

  /** A profile of an agent without `scope`, and one whose calls under it a person decides. */
  const refusedAndHeld = async (platform: keyof typeof MANIFESTS, scope: string) => {
    const { scopes } = MANIFESTS[platform];
    const without = Object.keys(scopes).filter((one) => one !== scope);
    const rules = [...ALLOW_ALL, { effect: 'require_approval', scopes: [scope] }];
    return {
      refused: profileOf(
        await organisation.agent({ rules: ALLOW_ALL, grants: { [platform]: { scopeList: without } } }),
      ),
      held: profileOf(await organisation.agent({ rules, grants: { [platform]: { scopeList: Object.keys(scopes) } } })),
    };
  };
  /** Approves the call that waits, as soon as one does. */
  const approveOne = async () => {
    const pending = async () => (await organisation.ask('GET', '/owner/approvals?status=pending')).body.approvals;
    await expect.poll(async () => (await pending()).length, { timeout: 20_000, interval: 100 }).toBe(1);
    const [{ approval_id: id }] = await pending();
    expect((await organisation.ask('POST', `/owner/approvals/${id}/approve`, {})).status).toBe(200);
  };

  onlyWith('gh', '--version')('gh issue create is refused, or waits for a person and is made once', async () => {
    const { refused, held } = await refusedAndHeld('codehost', 'codehost:issues.write');
    const repository = {
      id: 'R1',
      name: 'app',
      owner: { login: 'acme' },
      hasIssuesEnabled: true,
      viewerPermission: 'WRITE',
    };
    let made = 0;
    world.upstream.answer = (_, response, body) => {
      const isMutation = body.includes('mutation');
      if (isMutation) made++;
      const url = 'https://github.com/acme/app/issues/7';
      const data = isMutation ? { createIssue: { issue: { id: 'I7', url } } } : { repository };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data }));
    };
    const create = sh('gh issue create --repo acme/app --title "It breaks" --body "Look"');
    const environment = { GH_PROMPT_DISABLED: '1', GH_NO_UPDATE_NOTIFIER: '1' };
    const denied = await run(refused, create, environment);
    expect(denied.code).not.toBe(0);
    expect(denied.stderr).toContain('scope_not_granted');
    expect(made).toBe(0);
    const [ended] = await Promise.all([run(held, create, environment), approveOne()]);
    expect(ended, ended.stderr).toMatchObject({ code: 0, stdout: 'https://github.com/acme/app/issues/7\n' });
    expect(made).toBe(1);
  });

  onlyWith('npm', '--version')('npm publish is refused, or waits for a person and is made once', async () => {
    const { refused, held } = await refusedAndHeld('npm', 'npm:packages.publish');
    const put: string[] = [];
    world.upstream.answer = ({ method }, response, body) => {
      if (method === 'PUT') put.push(body);
      response.writeHead(method === 'PUT' ? 200 : 404, { 'content-type': 'application/json' }).end('{"ok":true}');
    };
    const publish = sh('echo \'{"name":"left","version":"1.0.1"}\' > package.json; npm publish --ignore-scripts');
    const environment = { npm_config_update_notifier: 'false' };
    const denied = await run(refused, publish, environment);
    expect(denied.code).not.toBe(0);
    expect(denied.stderr).toContain('scope_not_granted');
    expect(put).toEqual([]);
    const [ended] = await Promise.all([run(held, publish, environment), approveOne()]);
    expect(ended, ended.stderr).toMatchObject({ code: 0, stdout: '+ left@1.0.1\n' });
    expect(put.map((body) => Object.keys(JSON.parse(body)._attachments))).toEqual([['left-1.0.1.tgz']]);
  });

  onlyWith(
    'kubectl',
    'version',
    '--client',
  )('kubectl lists pods', async () => {
    const pods = { name: 'pods', singularName: '', namespaced: true, kind: 'Pod', verbs: ['get', 'list'] };
    answerWith({
      '/api': { kind: 'APIVersions', versions: ['v1'] },
      '/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups: [] },
      '/api/v1': { kind: 'APIResourceList', groupVersion: 'v1', resources: [pods] },
      '/api/v1/namespaces/default/pods': {
        kind: 'PodList',
        apiVersion: 'v1',
        items: [{ kind: 'Pod', apiVersion: 'v1', metadata: { name: 'web-0', namespace: 'default' } }],
      },
    });
    const ended = await run(profile, sh('kubectl get pods -o name; stat -c %a "$KUBECONFIG"'));
    expect(ended, ended.stderr).toMatchObject({ code: 0, stdout: 'pod/web-0\n600\n' });
  });
});

describe('git', () => {
  let given: GitWorld;
  beforeAll(async () => {
    given = await startGitWorld('sqlite');
    given.host.repository('acme/app');
  });

  test('clones and pushes with addresses of the code host, and settings of the parent’s stay', async () => {
    const profile = profileOf(await given.agent());
    const ended = await run(
      profile,
      sh(`set -e; git clone -q https://github.com/acme/app; cd app; git switch -q -c agent/x; echo y > y; git add y
        git commit -qm y; git push -q origin agent/x; git ls-remote git@github.com:acme/app agent/x | cut -f 2; git config --get acme.kept`),
      { ...GIT_ENVIRONMENT, GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'acme.kept', GIT_CONFIG_VALUE_0: 'yes' },
    );
    expect(ended, ended.stderr).toMatchObject({ code: 0, stderr: '', stdout: 'refs/heads/agent/x\nyes\n' });
  });

  test('a refusal says why', async () => {
    const profile = profileOf(await given.agent({ constraints: { repos: ['acme/other'] } }));
    const ended = await run(profile, sh('git clone -q https://github.com/acme/app'), GIT_ENVIRONMENT);
    expect(ended.code).toBe(128);
    expect(ended.stderr).toContain("acme/app is not in the agent's allowed repositories");
  });
});
