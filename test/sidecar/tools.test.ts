/** Installed tools, run by `agent-broker run`; a tool that is not installed is skipped with a message. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { basename, join } from 'node:path';
import { afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { github } from '../../broker/platforms/builtin/github.ts';
import { kubernetes } from '../../broker/platforms/builtin/kubernetes.ts';
import { npm } from '../../broker/platforms/builtin/npm.ts';
import { newPlaceholder } from '../../mcp/sidecar/placeholder.ts';
import { startSidecar } from '../../mcp/sidecar/sidecar.ts';
import { GIT_SCOPES, type GitWorld, runGit, startGitWorld } from '../world/git-world.ts';
import { thorough } from '../world/runner/thorough.ts';
import { GIT_ENVIRONMENT } from '../world/servers/git-host.ts';
import { startUpstream } from '../world/servers/upstream.ts';
import { newFolder } from '../world/stores.ts';
import { ALLOW_ALL, CANARY, givenWorld, shared } from '../world/world.ts';
import { type ProcessEnviron, profileOf, run, sh, startRun, treeEnvirons } from './run-world.ts';
import { onlyWith, pythonPath } from './tls-world.ts';

const MANIFESTS = { codehost: github, npm, kubernetes };
const UPLOAD = 'POST /repos/*/*/releases/*/assets';
type Answers = Record<string, unknown>;

/** Keys of the user who starts a run, which its command gets placeholders for. */
const OF_GITHUB = {
  ...{ GITHUB_TOKEN: 'ghp_of-the-user', GH_TOKEN: 'ghp_of-the-user', GH_ENTERPRISE_TOKEN: 'ghp_of-the-user' },
  AGENT_BROKER_ANY: 'of-the-user',
};
const PLANTED = { ...OF_GITHUB, NPM_TOKEN: 'npm_of-the-user', NODE_AUTH_TOKEN: 'npm_of-the-user' };

/** `trees`: process trees of a run, each taken while one of its tools was waiting for an answer. `tools`: patterns of their process names. */
function expectNoKeys(trees: readonly ProcessEnviron[][], tools: readonly RegExp[]): void {
  for (const [own, ...started] of trees) {
    // The run itself was started with the user's keys.
    const all = [own, ...started].map((one) => one?.environ).join('\0');
    expect(all).not.toContain(CANARY);
    expect(all).not.toMatch(/PRIVATE KEY|\beyJ[\w-]+\.[\w-]+\./);
    expect(own?.environ).toContain('of-the-user');
    expect(started.map(({ environ }) => environ).join('\0')).not.toContain('of-the-user');
    expect(started.some(({ name }) => tools.some((tool) => tool.test(name)))).toBe(true);
  }
  for (const tool of tools) expect(trees.flat().map(({ name }) => name)).toContainEqual(expect.stringMatching(tool));
}

/** Returns a package of npm. */
function packed(name: string): { bytes: Buffer; integrity: string } {
  const folder = newFolder();
  mkdirSync(join(folder, 'package'));
  writeFileSync(join(folder, 'package/package.json'), JSON.stringify({ name, version: '1.0.0' }));
  execFileSync('tar', ['-czf', 'packed.tgz', 'package'], { cwd: folder });
  const bytes = readFileSync(join(folder, 'packed.tgz'));
  return { bytes, integrity: `sha512-${createHash('sha512').update(bytes).digest('base64')}` };
}

describe('tools', () => {
  let profile: string;
  const world = givenWorld();
  const organisation = shared(() => world.organisation());
  beforeAll(async () => {
    for (const [id, manifest] of Object.entries(MANIFESTS))
      await organisation.platform({
        id,
        manifest: {
          ...manifest,
          base_url: world.upstream.url,
          ...(id === 'codehost' && { base_urls: { [UPLOAD]: `${world.upstream.url}/uploads` } }),
        },
      });
    await organisation.platform({
      id: 'pypi',
      manifest: { base_url: `${world.upstream.url}/simple`, scopes: { 'pypi:read': ['GET /**'] } },
    });
    const grants = Object.entries(MANIFESTS).map(([id, { scopes }]) => [id, { scopeList: Object.keys(scopes) }]);
    const all = { ...Object.fromEntries(grants), pypi: { scopeList: ['pypi:read'] } };
    profile = profileOf(await organisation.agent({ rules: ALLOW_ALL, grants: all }));
  });
  afterEach(() => {
    // All requests came from the broker.
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

  onlyWith('gh', '--version')('gh uses the API, page by page, with REST and GraphQL', async () => {
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

  test('gh creates a release with a file, uploads another, and downloads one', async () => {
    const url = 'https://api.github.com/repos/acme/app/releases/7';
    const upload_url = `${world.upstream.url}/uploads/repos/acme/app/releases/7/assets{?name,label}`;
    const asset = {
      id: 9,
      name: 'a.txt',
      url: 'https://api.github.com/repos/acme/app/releases/assets/9',
      state: 'uploaded',
    };
    const release = {
      id: 7,
      tag_name: 'v1',
      html_url: 'https://github.com/acme/app/releases/v1',
      url,
      upload_url,
      assets: [asset],
    };
    const uploads = '/uploads/repos/acme/app/releases/7/assets';
    answerWith(
      {
        // gh asks whether the tag exists, and for a draft at the same time as for the release: the first answer counts.
        get '/graphql'() {
          const query = world.upstream.seen.findLast(({ target }) => target === '/graphql')?.body;
          const isForDraft = String(query).includes('release(');
          return { data: { repository: isForDraft ? { release: null } : { ref: null } } };
        },
        '/repos/acme/app/releases': release,
        '/repos/acme/app/releases/7': release,
        get '/repos/acme/app/releases/tags/v1'() {
          return world.upstream.seen.some(({ method }) => method === 'PATCH') ? release : undefined;
        },
        '/repos/acme/app/releases/assets/9': Buffer.from('the file'),
        [uploads]: { id: 9, name: 'a.txt' },
      },
      ({ url: asked = '' }, response) => {
        if (!asked.startsWith(uploads)) return;
        const { writeHead } = response;
        response.writeHead = ((_: number) => writeHead.call(response, 201)) as typeof writeHead;
      },
    );
    const script = `echo first > a.txt; echo second > b.txt
      gh release create v1 a.txt --repo acme/app --notes x && gh release upload v1 b.txt --repo acme/app &&
      gh release download v1 --repo acme/app --pattern a.txt --output -`;
    const ended = await run(profile, sh(script));
    expect(ended, ended.stderr).toMatchObject({ code: 0, stdout: expect.stringMatching(/the file$/) });
    const uploaded = world.upstream.seen.filter(({ target }) => target.startsWith(uploads));
    expect(
      uploaded.map(({ method, target, body }) => `${method} ${target.replace(/.*[?&]name=/, '')} ${body}`),
    ).toEqual(['POST a.txt first\n', 'POST b.txt second\n']);
  });

  test("a URL in an answer is rewritten to the sidecar's", async () => {
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

  test('the Unix socket is accessible to its user only, requires the placeholder, and is removed at the end', async () => {
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
    expect(ended.stdout.split('\n')).toEqual(['700', '600', '600', '600', '403', '200', '403', '403', '']);
    expect(readdirSync(temporary)).toEqual([]);
    // A path that is too long for a socket does not prevent a run.
    const long = join(newFolder(), 'x'.repeat(90));
    mkdirSync(long);
    const elsewhere = await run(profile, sh('stat -c %F "$AGENT_BROKER_RUN_SOCKET"'), { TMPDIR: long });
    expect(elsewhere, elsewhere.stderr).toMatchObject({ code: 0, stdout: 'socket\n' });
    expect(readdirSync(long)).toEqual([]);
  });

  onlyWith('npm', '--version')('npm installs a package, and downloads one', async () => {
    const { bytes, integrity } = packed('left');
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
      sh(
        'echo "{}" > package.json; npm install --no-audit --no-fund left && cat node_modules/left/package.json; npm pack --prefer-online left',
      ),
      { npm_config_update_notifier: 'false' },
    );
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    expect(ended.stdout).toContain('"name":"left"');
    expect(ended.stdout).toContain('left-1.0.0.tgz');
    const [file, targets] = ['/left/-/left-1.0.0.tgz', world.upstream.seen.map(({ target }) => target)];
    expect([...new Set(targets)]).toEqual(['/left', file]);
    expect(targets.filter((one) => one === file)).toHaveLength(2);
  });

  onlyWith('npm', '--version')('npm installs from a registry that is not at the root of its host', async () => {
    const below = await world.organisation();
    const base = `${world.upstream.url}/npm`;
    await below.platform({ id: 'npm', manifest: { ...npm, base_url: base } });
    const grants = { npm: { scopeList: Object.keys(npm.scopes) } };
    const { bytes, integrity } = packed('@acme/left');
    // A package that is named like the path, too.
    const packages = ['@acme/left', 'npm'].map((name) => {
      const tarball = `${base}/${name}/-/left-1.0.0.tgz`;
      const versions = { '1.0.0': { name, version: '1.0.0', dist: { tarball, integrity } } };
      return [`/npm/${name.replace('/', '%2F')}`, { name, 'dist-tags': { latest: '1.0.0' }, versions }];
    });
    answerWith({
      ...Object.fromEntries(packages),
      ...{ '/npm/@acme/left/-/left-1.0.0.tgz': bytes, '/npm/npm/-/left-1.0.0.tgz': bytes },
    });
    const ended = await run(
      profileOf(await below.agent({ rules: ALLOW_ALL, grants })),
      sh(
        `echo "{}" > package.json; npm install --no-audit --no-fund @acme/left npm && cat node_modules/npm/package.json`,
      ),
      { npm_config_update_notifier: 'false' },
    );
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    expect(ended.stdout).toContain('"name":"@acme/left"');
    expect(world.upstream.seen.map(({ target }) => target).toSorted()).toEqual([
      ...['/npm/@acme%2Fleft', '/npm/@acme/left/-/left-1.0.0.tgz', '/npm/npm', '/npm/npm/-/left-1.0.0.tgz'],
    ]);
  });

  const python = pythonPath() ?? 'python3';
  onlyWith(
    python,
    '-m',
    'pip',
    '--version',
  )('pip installs an allowed wheel, and is refused a denied one', async () => {
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
      // Settings of the machine may name other indexes.
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

  /** Returns profiles of an agent without `scope`, and of one whose calls under it are held. */
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
  /** Approves the held call, as soon as there is one. */
  const approveOne = async () => {
    await expect.poll(async () => (await organisation.pending()).length, { timeout: 20_000, interval: 100 }).toBe(1);
    const [{ approval_id: id }] = await organisation.pending();
    expect((await organisation.approve(id)).status).toBe(200);
  };

  onlyWith('gh', '--version')(
    'gh issue create is refused without the scope, or waits for an approval and is made once',
    async () => {
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
    },
  );

  // In CI `gh issue create` shows it, in a third of the time.
  test.runIf(thorough)(
    'npm publish is refused without the scope, or waits for an approval and is made once',
    async () => {
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
    },
  );

  const inFlight: [RegExp, string[], string][] = [
    [/^gh/, ['gh', '--version'], 'gh api repos/acme/app'],
    [/^(?:npm|node)/, ['npm', '--version'], 'npm view left version'],
    [/^curl/, ['curl', '--version'], 'curl -sS -H "Authorization: token $GH_TOKEN" "$GITHUB_API_URL/repos/acme/app"'],
    [
      /^python/,
      [python, '-c', 'import requests'],
      `${python} -c "import os, requests; print(requests.get(os.environ['GITHUB_API_URL'] + '/repos/acme/app', headers={'Authorization': 'Bearer ' + os.environ['GH_TOKEN']}).text)"`,
    ],
    [/^kubectl/, ['kubectl', 'version', '--client'], 'kubectl get --raw /version'],
  ];
  const installed = inFlight.filter(([, [tool = '', ...words]]) => onlyWith(tool, ...words) === test);
  test(`while ${installed.map(([, [tool]]) => basename(tool ?? '')).join(', ')} wait for an answer, no process of their run has a key`, async () => {
    const trees: ProcessEnviron[][] = [];
    answerWith(
      { '/repos/acme/app': { name: 'app' }, '/version': {}, '/left': { name: 'left', versions: {} } },
      () => void trees.push(treeEnvirons(started.child.pid ?? 0)),
    );
    // With further lines, the shell does not replace itself with the last tool.
    const lines = [...installed.map(([, , line]) => line), 'true'].join('\n');
    const started = startRun(profile, sh(lines), { ...PLANTED, npm_config_update_notifier: 'false' });
    await started.ended;
    expectNoKeys(
      trees,
      installed.map(([name]) => name),
    );
  });

  onlyWith(
    'kubectl',
    'version',
    '--client',
  )(
    'kubectl apply makes and changes an object; a change is refused, or waits for a person and is made once',
    async () => {
      const cluster = configMaps();
      world.upstream.answer = cluster.answer;
      const applying = (color: string) =>
        `kubectl apply --validate=false -f - <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: { name: web, namespace: default }
data: { color: ${color} }
YAML
`;
      const apply = (color: string) => sh(applying(color));
      const both = await run(profile, sh(`set -e; ${applying('blue')}${applying('green')}stat -c %a "$KUBECONFIG"`));
      expect(both, both.stderr).toMatchObject({
        code: 0,
        stdout: 'configmap/web created\nconfigmap/web configured\n600\n',
      });
      expect(cluster.colors()).toEqual(['green']);
      expect(cluster.changes).toEqual(['POST', 'PATCH application/strategic-merge-patch+json']);
      const { refused, held } = await refusedAndHeld('kubernetes', 'kubernetes:config.write');
      const denied = await run(refused, apply('red'));
      expect(denied.code).not.toBe(0);
      expect(denied.stderr).toContain('scope_not_granted');
      const [ended] = await Promise.all([run(held, apply('red')), approveOne()]);
      expect(ended, ended.stderr).toMatchObject({ code: 0, stdout: 'configmap/web configured\n' });
      expect(cluster.colors()).toEqual(['red']);
      expect(cluster.changes).toHaveLength(3);
      const patched = await run(
        profile,
        sh(`kubectl patch configmap web --type json -p '[{"op":"replace","path":"/data/color","value":"black"}]'
        kubectl apply --server-side --force-conflicts --validate=false -f - <<'YAML'
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"default"},"data":{"color":"white"}}
YAML`),
      );
      expect(patched, patched.stderr).toMatchObject({
        code: 0,
        stdout: 'configmap/web patched\nconfigmap/web serverside-applied\n',
      });
      // kubectl sends a second apply, which takes over the fields of the earlier ones.
      expect([...new Set(cluster.changes.slice(3))]).toEqual([
        'PATCH application/json-patch+json',
        'PATCH application/apply-patch+yaml',
      ]);
    },
  );
});

type ConfigMap = { metadata: Record<string, unknown>; data?: Record<string, string> };

/** The part of an API server that kubectl needs to create and change config maps. `changes`: methods and media types of the received changes. */
function configMaps() {
  const maps = new Map<string, ConfigMap>();
  const changes: string[] = [];
  const served: Answers = {
    '/api': { kind: 'APIVersions', versions: ['v1'] },
    '/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups: [] },
    '/api/v1': {
      kind: 'APIResourceList',
      groupVersion: 'v1',
      resources: [
        {
          name: 'configmaps',
          singularName: 'configmap',
          namespaced: true,
          kind: 'ConfigMap',
          verbs: ['create', 'get', 'list', 'patch', 'update'],
        },
      ],
    },
  };
  const change = ({ method = '', headers }: IncomingMessage, name: string, body: string): ConfigMap => {
    const type = String(headers['content-type']);
    changes.push(method === 'PATCH' ? `${method} ${type}` : method);
    const before = maps.get(name) ?? { metadata: {} };
    const given = JSON.parse(body);
    if (type === 'application/json-patch+json')
      return { ...before, data: { ...before.data, [given[0].path.replace('/data/', '')]: given[0].value } };
    return {
      ...before,
      ...given,
      metadata: { ...before.metadata, ...given.metadata, uid: 'u1', resourceVersion: String(changes.length) },
      data: { ...before.data, ...given.data },
    };
  };
  const answer = (request: IncomingMessage, response: ServerResponse, body: string): void => {
    const { method, url = '' } = request;
    const path = url.replace(/\?.*$/s, '');
    const [, named] = /^\/api\/v1\/namespaces\/default\/configmaps(?:\/([a-z]+))?$/.exec(path) ?? [];
    const name = named ?? 'web';
    if (path.includes('/configmaps') && method !== 'GET') maps.set(name, change(request, name, body));
    const found = served[path] ?? (path.includes('/configmaps/') || method === 'POST' ? maps.get(name) : undefined);
    response.writeHead(found === undefined ? 404 : 200, { 'content-type': 'application/json' });
    const missing = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 };
    response.end(JSON.stringify(found ?? missing));
  };
  return { answer, changes, colors: () => [...maps.values()].map(({ data }) => data?.color) };
}

describe('git', () => {
  let given: GitWorld;
  beforeAll(async () => {
    given = await startGitWorld('sqlite');
    given.host.repository('acme/app');
  });

  test("clones and pushes with URLs of the code host, and keeps the parent's settings", async () => {
    const profile = profileOf(await given.agent());
    const ended = await run(
      profile,
      sh(`set -e; git clone -q https://github.com/acme/app; cd app; git switch -q -c agent/x; echo y > y; git add y
        git commit -qm y; git push -q origin agent/x; git ls-remote git@github.com:acme/app agent/x | cut -f 2; git config --get acme.kept`),
      { ...GIT_ENVIRONMENT, GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'acme.kept', GIT_CONFIG_VALUE_0: 'yes' },
    );
    expect(ended, ended.stderr).toMatchObject({ code: 0, stderr: '', stdout: 'refs/heads/agent/x\nyes\n' });
  });

  onlyWith('gh', '--version')(
    'gh takes the repository from the clone, over https and SSH, with rules of the user',
    async () => {
      const profile = profileOf(
        await given.agent({ scopes: [...GIT_SCOPES, 'codehost:issues.read', 'codehost:pulls.write'] }),
      );
      const paths: string[] = [];
      given.host.answer = ({ url = '' }, response) => {
        if (url.startsWith('/acme/')) return false;
        paths.push(url);
        return response.writeHead(200, { 'content-type': 'application/json' }).end('[{"title":"one"}]');
      };
      onTestFinished(() => {
        given.host.answer = undefined;
      });
      const ended = await run(
        profile,
        sh(`set -e; git clone -q https://github.com/acme/app; cd app
        gh api 'repos/{owner}/{repo}/issues' --jq '.[].title'; git remote -v
        git remote set-url origin git@github.com:acme/app.git; gh api 'repos/{owner}/{repo}/issues' --jq '.[].title'
        git fetch -q; GIT_CONFIG_COUNT=0 git fetch -q`),
        {
          ...GIT_ENVIRONMENT,
          GIT_CONFIG_COUNT: '1',
          GIT_CONFIG_KEY_0: 'url.gh:.insteadOf',
          GIT_CONFIG_VALUE_0: 'https://github.com/acme/',
        },
      );
      const remotes = 'origin\thttp://github.com/acme/app (fetch)\norigin\thttp://github.com/acme/app (push)\n';
      expect(ended, ended.stderr).toMatchObject({ code: 0, stderr: '', stdout: `one\n${remotes}one\n` });
      expect(paths).toEqual(Array(2).fill('/repos/acme/app/issues'));
    },
  );

  test('uses the address of the sidecar where the code host is excluded from proxies', async () => {
    const profile = profileOf(await given.agent());
    const environment = { ...GIT_ENVIRONMENT, http_proxy: 'http://127.0.0.1:9', NO_PROXY: '.github.com' };
    const ended = await run(
      profile,
      sh('git clone -q https://github.com/acme/app && git -C app remote -v'),
      environment,
    );
    expect(ended, ended.stderr).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/^origin\thttp:\/\/127\.0\.0\.1:\d+\/git\/acme\/app \(fetch\)\n/),
    });
  });

  test('the proxy and the key for other hosts in the settings of git are not used for the sidecar', async () => {
    const profile = profileOf(await given.agent());
    const settings = { 'http.proxy': 'http://127.0.0.1:9', 'http.extraHeader': 'Authorization: Bearer own' };
    const variables = Object.entries(settings).flatMap(([name, value], i) => [
      [`GIT_CONFIG_KEY_${i}`, name],
      [`GIT_CONFIG_VALUE_${i}`, value],
    ]);
    const environment = { ...GIT_ENVIRONMENT, GIT_CONFIG_COUNT: '2', ...Object.fromEntries(variables) };
    const ended = await run(profile, sh('git ls-remote -q --heads https://github.com/acme/app main'), environment);
    expect(ended, ended.stderr).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringContaining('refs/heads/main'),
    });
  });

  test('while git waits for an answer, no process of its run has a key', async () => {
    const profile = profileOf(await given.agent());
    const trees: ProcessEnviron[][] = [];
    given.host.answer = () => {
      trees.push(treeEnvirons(started.child.pid ?? 0));
      return false;
    };
    const started = startRun(profile, sh('git ls-remote https://github.com/acme/app'), {
      ...GIT_ENVIRONMENT,
      ...OF_GITHUB,
    });
    const ended = await started.ended;
    given.host.answer = undefined;
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    expectNoKeys(trees, [/^git/]);
  });

  test('prints why the broker refuses the key of the run, or that it does not answer, and asks for no user name', async () => {
    const why = 'agent-broker: invalid_signature - The key of this agent is another one.';
    const broker = await startUpstream();
    broker.answer = (_, response) => {
      response.writeHead(401, { 'content-type': 'text/plain; charset=utf-8', 'www-authenticate': 'Basic realm="x"' });
      response.end(`${why}\n`);
    };
    const placeholder = newPlaceholder();
    const sidecar = await startSidecar({
      broker: { url: broker.url, token: () => 'of-the-old-key' },
      ...{ placeholder, connections: ['codehost-main'], codehost: 'codehost-main', socket: undefined },
    });
    onTestFinished(() => sidecar.close());
    const config = { 'http.extraHeader': `Authorization: Basic ${btoa(`agent:${placeholder}`)}` };
    const asked = () => runGit(['ls-remote', `${sidecar.url}/git/acme/app`], { config });
    expect((await asked()).stderr).toContain(`remote: ${why}\n`);
    await broker.close();
    expect((await asked()).stderr).toMatch(
      /^remote: agent-broker: broker_unreachable - The broker at \S+ did not answer/,
    );
  });

  test('prints the reason of a refusal', async () => {
    const profile = profileOf(await given.agent({ constraints: { repos: ['acme/other'] } }));
    const ended = await run(profile, sh('git clone -q https://github.com/acme/app'), GIT_ENVIRONMENT);
    expect(ended.code).toBe(128);
    expect(ended.stderr).toContain("acme/app is not in the agent's allowed repositories");
  });
});
