/** The lines of docs/unmodified.md that run a tool, executed verbatim with the installed tool. */
import { execFileSync } from 'node:child_process';
import { beforeAll, describe, expect, test } from 'vitest';
import type { BuiltinName } from '../../broker/platforms/builtin-names.ts';
import { manifestOf } from '../platforms/classified.ts';
import { awsProblem } from '../signing/aws-verifier.ts';
import { startGitWorld } from '../world/git-world.ts';
import { GIT_ENVIRONMENT } from '../world/servers/git-host.ts';
import { ALLOW_ALL, CANARY, givenWorld } from '../world/world.ts';
import { python, ROWS, STORE_TOOLS, typed } from './page-lines.ts';
import { profileOf } from './run-world.ts';
import { onlyWith } from './tls-world.ts';

const KEY = { access_key_id: 'AKIACANARY0123456789', secret_access_key: CANARY };
const WHEEL = 'left-1.0-py3-none-any.whl';

type Answers = Record<string, string | object | (() => Buffer)>;
type Case = { tool: string; probe: string[]; answers?: Answers; printed: RegExp; asked: string };

/** Returns an empty Python package (PEP 427). */
function wheel(): Buffer {
  const make = `
import io, sys, zipfile
made = io.BytesIO()
with zipfile.ZipFile(made, 'w') as wheel:
    wheel.writestr('left-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: left\\nVersion: 1.0\\n')
    wheel.writestr('left-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr('left-1.0.dist-info/RECORD', '')
sys.stdout.buffer.write(made.getvalue())`;
  return execFileSync(python, ['-c', make]);
}

const PODS = { name: 'pods', singularName: '', namespaced: true, kind: 'Pod', verbs: ['get', 'list'] };
const CASES: Case[] = [
  {
    ...{ tool: 'gh', probe: ['gh', '--version'] },
    ...{ answers: { '/codehost/repos/acme/app/issues': [{ title: 'It breaks' }] }, printed: /^It breaks$/m },
    asked: '/codehost/repos/acme/app/issues',
  },
  {
    ...{ tool: 'npm', probe: ['npm', '--version'] },
    answers: {
      '/npm/left': {
        name: 'left',
        'dist-tags': { latest: '1.0.0' },
        versions: { '1.0.0': { name: 'left', version: '1.0.0' } },
      },
    },
    ...{ printed: /^1\.0\.0$/m, asked: '/npm/left' },
  },
  {
    ...{ tool: 'kubectl', probe: ['kubectl', 'version', '--client'] },
    answers: {
      '/kubernetes/api': { kind: 'APIVersions', versions: ['v1'] },
      '/kubernetes/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups: [] },
      '/kubernetes/api/v1': { kind: 'APIResourceList', groupVersion: 'v1', resources: [PODS] },
      '/kubernetes/api/v1/namespaces/default/pods': {
        ...{ kind: 'PodList', apiVersion: 'v1' },
        items: [{ kind: 'Pod', apiVersion: 'v1', metadata: { name: 'web-0', namespace: 'default' } }],
      },
    },
    ...{ printed: /^pod\/web-0$/m, asked: '/kubernetes/api/v1/namespaces/default/pods' },
  },
  {
    ...{ tool: 'pip', probe: [python, '-m', 'pip', '--version'] },
    answers: {
      '/pypi/left/': `<!DOCTYPE html><html><body><a href="../files/${WHEEL}">${WHEEL}</a></body></html>`,
      [`/pypi/files/${WHEEL}`]: wheel,
    },
    ...{ printed: new RegExp(WHEEL), asked: `/pypi/files/${WHEEL}` },
  },
  {
    ...{ tool: 'curl', probe: ['curl', '--version'] },
    ...{ answers: { '/crm/contacts': [{ name: 'Ann' }] }, printed: /"name":"Ann"/, asked: '/crm/contacts' },
  },
  {
    ...{ tool: 'aws', probe: ['aws', '--version'] },
    answers: {
      '/s3/bucket':
        '<?xml version="1.0"?><ListBucketResult><Name>bucket</Name><KeyCount>1</KeyCount><IsTruncated>false</IsTruncated><Contents><Key>report.csv</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"x"</ETag><Size>7</Size><StorageClass>STANDARD</StorageClass></Contents></ListBucketResult>',
    },
    ...{ printed: / 7 report\.csv$/m, asked: '/s3/bucket' },
  },
];

describe('a line of the page', () => {
  let profile: string;
  const world = givenWorld();
  beforeAll(async () => {
    const organisation = await world.organisation();
    const at = (id: string) => `${world.upstream.url}/${id}`;
    const builtin: [string, BuiltinName][] = [
      ['codehost', 'github'],
      ['npm', 'npm'],
      ['kubernetes', 'kubernetes'],
      ['s3', 's3'],
    ];
    const grants: Record<string, { scopeList: string[] }> = {};
    for (const [id, name] of builtin) {
      const manifest = { ...manifestOf(name), base_url: at(id) };
      await organisation.platform({ id, manifest, secret: id === 's3' ? JSON.stringify(KEY) : CANARY });
      grants[id] = { scopeList: Object.keys(manifest.scopes) };
    }
    for (const id of ['pypi', 'crm']) {
      await organisation.platform({ id, manifest: { base_url: at(id), scopes: { [`${id}:read`]: ['GET /**'] } } });
      grants[id] = { scopeList: [`${id}:read`] };
    }
    profile = profileOf(await organisation.agent({ rules: ALLOW_ALL, grants }));
  });

  for (const { tool, probe, answers = {}, printed, asked } of CASES)
    onlyWith(probe[0] ?? '', ...probe.slice(1))(
      `${tool} reads through the broker, with the platform's key`,
      async () => {
        world.upstream.seen.length = 0;
        world.upstream.answer = ({ method = '', url = '', headers }, response, body) => {
          const isSigned = url.startsWith('/s3/');
          const at = { region: 'us-east-1', service: 's3', now: Date.now() };
          const isKnown = isSigned
            ? awsProblem({ method, target: url, headers, body: Buffer.from(body) }, KEY, at) === undefined
            : headers.authorization === `Bearer ${CANARY}`;
          const found = isKnown ? answers[url.replace(/\?.*$/s, '')] : undefined;
          response.setHeader(
            'content-type',
            typeof found === 'object' ? 'application/json' : isSigned ? 'text/xml' : 'text/html',
          );
          response.writeHead(found === undefined ? 404 : 200);
          if (typeof found === 'function') response.end(found());
          else response.end(typeof found === 'string' ? found : JSON.stringify(found ?? {}));
        };
        const { code, stdout, stderr } = await typed(tool, profile);
        expect(code, stderr).toBe(0);
        expect(stdout).toMatch(printed);
        expect(world.upstream.seen.map(({ target }) => target.replace(/\?.*$/s, ''))).toContain(asked);
        expect(stdout + stderr).not.toContain(CANARY);
      },
    );

  describe('git', () => {
    let ofGit: string;
    beforeAll(async () => {
      const given = await startGitWorld('sqlite');
      given.host.repository('acme/app');
      ofGit = profileOf(await given.agent());
    });

    test("git reads through the broker, with the platform's key", async () => {
      const { code, stdout, stderr } = await typed('git', ofGit, GIT_ENVIRONMENT);
      expect(code, stderr).toBe(0);
      expect(stdout).toMatch(/^[0-9a-f]{40}\s+refs\/heads\/main$/m);
    });
  });

  test('is covered by a test, for every tool', () => {
    expect([...ROWS.keys()].sort()).toEqual([...CASES.map(({ tool }) => tool), 'git', ...STORE_TOOLS].sort());
  });
});
