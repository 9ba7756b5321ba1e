/** Files that clients of platforms send and fetch, at hosts beside the API's. */
import tls from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parsePlatformEntry } from '../../broker/platforms/builtin.ts';
import { certificateFor } from '../egress/certificate.ts';
import { afterFile } from '../world/after-file.ts';
import type { TestAgent } from '../world/agent.ts';
import { startUpstream, type Upstream } from '../world/upstream.ts';
import { ALLOW_ALL, CANARY, startWorld, type World } from '../world/world.ts';
import { load, withoutLab } from './installed.ts';

describe.skipIf(withoutLab)(`files${withoutLab ? ` (skipped: ${withoutLab})` : ''}`, () => {
  const trusted = tls.getCACertificates('default');
  let world: World;
  let agent: TestAgent;
  let api: Upstream;
  /** Where signed addresses lead, and where uploads go. */
  let files: Upstream;
  beforeAll(async () => {
    const certificate = certificateFor('localhost');
    tls.setDefaultCACertificates([...trusted, certificate.cert]);
    [api, files] = [await startUpstream(), await startUpstream(certificate)];
    afterFile(async () => {
      await Promise.all([api.close(), files.close()]);
    });
    world = await startWorld('sqlite', { AGENT_BROKER_ALLOW_PRIVATE: `${api.address},${files.address}` });
    const organisation = await world.organisation();
    const github = {
      use: 'github',
      base_url: api.url,
      git_base_url: files.url,
      base_urls: { 'POST /repos/*/*/releases/*/assets': `${files.url}/uploads` },
    };
    const grants: Record<string, { scopeList: string[] }> = {};
    for (const [id, entry] of Object.entries({ github, openai: { use: 'openai', base_url: api.url } })) {
      const manifest = parsePlatformEntry(entry).data!;
      await organisation.platform({ id, manifest });
      grants[id] = { scopeList: Object.keys(manifest.scopes) };
    }
    agent = await organisation.agent({ rules: ALLOW_ALL, grants });
  });
  afterAll(() => tls.setDefaultCACertificates(trusted));
  const octokit = () => {
    const { Octokit } = load('@octokit/rest');
    return new Octokit({ auth: agent.token(), baseUrl: `${world.running.baseUrl}/proxy/github-main` });
  };
  const here = { owner: 'acme', repo: 'app' };

  test('Octokit reads the log of a job and an archive, of which the platform tells a signed address', async () => {
    api.answer = ({ url = '' }, response) =>
      response.writeHead(302, { location: `${files.url}${url}?sig=SIGNED` }).end();
    files.answer = ({ url = '' }, response) =>
      url.includes('/logs')
        ? response.writeHead(200, { 'content-type': 'text/plain' }).end('##[error] it broke')
        : response.writeHead(200, { 'content-type': 'application/x-gzip' }).end(Buffer.from([0x1f, 0x8b, 0xff]));
    const log = await octokit().rest.actions.downloadJobLogsForWorkflowRun({ ...here, job_id: 7 });
    expect(log).toMatchObject({ status: 200, data: '##[error] it broke' });
    const archive = await octokit().rest.repos.downloadTarballArchive({ ...here, ref: 'main' });
    expect(Buffer.from(archive.data as ArrayBuffer)).toEqual(Buffer.from([0x1f, 0x8b, 0xff]));
    expect(files.seen.map(({ target }) => target)).toEqual([
      '/repos/acme/app/actions/jobs/7/logs?sig=SIGNED',
      '/repos/acme/app/tarball/main?sig=SIGNED',
    ]);
    for (const { rawHeaders } of files.seen) expect(rawHeaders.join('\n')).not.toContain(CANARY);
  });

  test('Octokit escapes the slashes of a ref and of a path, which are sent as slashes', async () => {
    api.seen.length = 0;
    api.answer = (_, response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"ref":"x"}');
    const { rest } = octokit();
    expect((await rest.git.getRef({ ...here, ref: 'heads/feature/x' })).data).toEqual({ ref: 'x' });
    await rest.repos.getContent({ ...here, path: 'docs/a.md' });
    expect(api.seen.map(({ target }) => target)).toEqual([
      '/repos/acme/app/git/ref/heads/feature/x',
      '/repos/acme/app/contents/docs/a.md',
    ]);
  });

  test('Octokit uploads a release asset, to the host for uploads', async () => {
    files.seen.length = 0;
    files.answer = (_, response) => response.writeHead(201, { 'content-type': 'application/json' }).end('{"id":9}');
    const sent = {
      ...here,
      release_id: 3,
      name: 'a.txt',
      data: 'the asset',
      // Octokit says application/json of what it is not told of.
      headers: { 'content-type': 'text/plain' },
      baseUrl: `${world.running.baseUrl}/proxy/github-main`,
    };
    expect((await octokit().rest.repos.uploadReleaseAsset(sent)).data).toEqual({ id: 9 });
    expect(files.seen).toMatchObject([
      { method: 'POST', target: '/uploads/repos/acme/app/releases/3/assets?name=a.txt&', body: 'the asset' },
    ]);
    expect(files.seen[0]?.headers.authorization).toBe(`Bearer ${CANARY}`);
  });

  test('OpenAI’s client uploads a file, and the same goes as JSON', async () => {
    const { OpenAI } = load('openai');
    api.seen.length = 0;
    api.answer = (_, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"file-1"}');
    const openai = new OpenAI({ apiKey: agent.token(), baseURL: `${world.running.baseUrl}/proxy/openai-main` });
    const file = new File(['{"x":1}\n'], 'a.jsonl', { type: 'application/jsonl' });
    expect((await openai.files.create({ file, purpose: 'batch' })).id).toBe('file-1');
    const data = {
      purpose: 'batch',
      file: { filename: 'a.jsonl', data: '{"x":1}\n', content_type: 'application/jsonl' },
    };
    const call = { platform: 'openai', scope: 'openai:files.write', method: 'POST', endpoint: '/files', data };
    expect((await agent.act(call)).body.data).toEqual({ id: 'file-1' });
    const read = async ({ body, headers }: (typeof api.seen)[number]) => {
      const form = await new Response(body, {
        headers: { 'content-type': String(headers['content-type']) },
      }).formData();
      const part = form.get('file') as File;
      return { purpose: form.get('purpose'), name: part.name, type: part.type, text: await part.text() };
    };
    expect(api.seen).toHaveLength(2);
    const [theirs, ours] = await Promise.all(api.seen.map(read));
    expect(ours).toEqual({ purpose: 'batch', name: 'a.jsonl', type: 'application/jsonl', text: '{"x":1}\n' });
    expect(theirs).toMatchObject({ purpose: 'batch', name: 'a.jsonl', text: '{"x":1}\n' });
  });
});
