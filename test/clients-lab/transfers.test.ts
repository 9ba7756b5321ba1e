/** Files that clients of platforms upload and download, on other hosts than the API's. */
import tls from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parsePlatformEntry } from '../../broker/platforms/builtin.ts';
import { certificateFor } from '../egress/certificate.ts';
import { profileOf, run } from '../sidecar/run-world.ts';
import { type AwsKey, awsProblem } from '../signing/aws-verifier.ts';
import type { TestAgent } from '../world/agent.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { startUpstream, type Upstream } from '../world/servers/upstream.ts';
import { ALLOW_ALL, CANARY, type Organisation, startWorld, type World } from '../world/world.ts';
import { load, withoutLab } from './installed.ts';

const MIB = 1024 * 1024;
const KEY: AwsKey = { access_key_id: 'AKIACANARY0123456789', secret_access_key: CANARY };

describe.skipIf(withoutLab)(`files${withoutLab ? ` (skipped: ${withoutLab})` : ''}`, () => {
  const trusted = tls.getCACertificates('default');
  let world: World;
  let organisation: Organisation;
  let slackGrant: Record<string, { scopeList: string[] }>;
  let agent: TestAgent;
  /** An agent whose grant names one repository. */
  let limited: TestAgent;
  let api: Upstream;
  /** The host of signed URLs and of uploads. */
  let files: Upstream;
  beforeAll(async () => {
    const certificate = certificateFor('localhost');
    tls.setDefaultCACertificates([...trusted, certificate.cert]);
    [api, files] = [await startUpstream(), await startUpstream(certificate)];
    afterFile(async () => {
      await Promise.all([api.close(), files.close()]);
    });
    world = await startWorld('sqlite', { AGENT_BROKER_ALLOW_PRIVATE: `${api.address},${files.address}` });
    organisation = await world.organisation();
    const github = {
      use: 'github',
      base_url: api.url,
      git_base_url: files.url,
      base_urls: { 'POST /repos/*/*/releases/*/assets': `${files.url}/uploads` },
    };
    const grants: Record<string, { scopeList: string[] }> = {};
    const slack = {
      use: 'slack',
      base_url: `${api.url}/slack`,
      base_urls: { 'POST /upload/v1/**': `${files.url}/slack-files`, 'GET /files-pri/**': `${files.url}/slack-files` },
    };
    for (const [id, entry] of Object.entries({ github, slack, openai: { use: 'openai', base_url: api.url } })) {
      const manifest = parsePlatformEntry(entry).data!;
      await organisation.platform({ id, manifest });
      grants[id] = { scopeList: Object.keys(manifest.scopes) };
    }
    for (const [id, url] of Object.entries({ s3: files.url, plain: api.url })) {
      const manifest = parsePlatformEntry({ use: 's3', base_url: `${url}/s3` }).data!;
      await organisation.platform({ id, manifest, secret: JSON.stringify(KEY) });
      grants[id] = { scopeList: Object.keys(manifest.scopes) };
    }
    agent = await organisation.agent({ rules: ALLOW_ALL, grants });
    slackGrant = { slack: grants.slack! };
    const oneRepository = { ...grants.github, constraints: '{"repos":["acme/app"]}' };
    limited = await organisation.agent({ rules: ALLOW_ALL, grants: { github: oneRepository } });
  });
  afterAll(() => tls.setDefaultCACertificates(trusted));
  const octokit = (of = agent) => {
    const { Octokit } = load('@octokit/rest');
    return new Octokit({ auth: of.token(), baseUrl: `${world.running.baseUrl}/proxy/github-main` });
  };
  const here = { owner: 'acme', repo: 'app' };

  test('Octokit downloads the log of a job and an archive, for which the platform redirects to a signed URL', async () => {
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

  test('Octokit escapes the slashes of a ref and of a path, and they are sent as slashes', async () => {
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

  test('Octokit uploads a release asset to the host for uploads', async () => {
    files.seen.length = 0;
    files.answer = (_, response) => response.writeHead(201, { 'content-type': 'application/json' }).end('{"id":9}');
    const sent = {
      ...here,
      release_id: 3,
      name: 'a.txt',
      data: 'the asset',
      // Octokit sends application/json unless a type is given.
      headers: { 'content-type': 'text/plain' },
      baseUrl: `${world.running.baseUrl}/proxy/github-main`,
    };
    expect((await octokit().rest.repos.uploadReleaseAsset(sent)).data).toEqual({ id: 9 });
    expect(files.seen).toMatchObject([
      { method: 'POST', target: '/uploads/repos/acme/app/releases/3/assets?name=a.txt&', body: 'the asset' },
    ]);
    expect(files.seen[0]?.headers.authorization).toBe(`Bearer ${CANARY}`);
    const binary = { ...sent, data: 'b'.repeat(2 * MIB), headers: { 'content-type': 'application/zip' } };
    expect((await octokit(limited).rest.repos.uploadReleaseAsset(binary)).data).toEqual({ id: 9 });
    expect(files.seen[1]?.body.length).toBe(2 * MIB);
    await expect(
      octokit(limited).rest.repos.uploadReleaseAsset({ ...binary, headers: { 'content-type': 'application/json' } }),
    ).rejects.toMatchObject({ status: 413 });
    await expect(octokit(limited).rest.repos.uploadReleaseAsset({ ...binary, repo: 'other' })).rejects.toMatchObject({
      status: 403,
    });
    expect(files.seen).toHaveLength(2);
  });

  test('a client that uploads to the upload_url of a release leads through the broker, also in a list, and where the release has 1,000 files', async () => {
    const assets = Array.from({ length: 1_000 }, (_, id) => ({ id, uploader: { login: 'x'.repeat(2_000) } }));
    const upload_url = `${files.url}/uploads/repos/acme/app/releases/7/assets{?name,label}`;
    api.answer = ({ method = '', url = '' }, response) => {
      const release = { upload_url, ...(method === 'GET' && { assets }) };
      const page = /releases\?page=(\d)$/.exec(url)?.[1];
      const text = JSON.stringify(page === undefined ? release : Array(Number(page)).fill(release));
      response.writeHead(200, { 'content-type': 'application/json' }).end(text);
    };
    files.answer = (_, response) => response.writeHead(201, { 'content-type': 'application/json' }).end('{"id":9}');
    files.seen.length = 0;
    const client = octokit();
    const { rest } = client;
    const releases = [
      await rest.repos.createRelease({ ...here, tag_name: 'v1' }),
      await rest.repos.updateRelease({ ...here, release_id: 7 }),
      await rest.repos.getRelease({ ...here, release_id: 7 }),
      await rest.repos.getLatestRelease(here),
      await rest.repos.getReleaseByTag({ ...here, tag: 'v1' }),
      ...(await rest.repos.listReleases({ ...here, page: 1 })).data.map((data: unknown) => ({ data })),
    ];
    expect(releases).toHaveLength(6);
    for (const { data } of releases) {
      expect(data.upload_url).toBe(
        `${world.running.baseUrl}/proxy/github-main/repos/acme/app/releases/7/assets{?name,label}`,
      );
      const headers = { 'content-type': 'text/plain' };
      const sent = { url: data.upload_url, name: 'a b.txt', data: 'the asset', headers };
      expect((await client.request({ method: 'POST', ...sent })).data).toEqual({ id: 9 });
    }
    expect(new Set(files.seen.map(({ target }) => target))).toEqual(
      new Set(['/uploads/repos/acme/app/releases/7/assets?name=a%20b.txt&']),
    );
    // A list of more than 4 MiB is passed on unchanged.
    const { data: long } = await rest.repos.listReleases({ ...here, page: 3 });
    expect(long.map((release: { upload_url: string }) => release.upload_url)).toEqual(Array(3).fill(upload_url));
  });

  test('the contents of a file of Slack are read from the host of files, by /proxy and as an action', async () => {
    const bytes = Buffer.from([0x89, 0x50, 0xff, 0]);
    files.answer = (_, response) => response.writeHead(200, { 'content-type': 'image/png' }).end(bytes);
    files.seen.length = 0;
    const endpoint = '/files-pri/T1-F1/download/a%20b.png';
    const read = await fetch(`${world.running.baseUrl}/proxy/slack-main${endpoint}`, {
      headers: { authorization: `Bearer ${agent.token()}` },
    });
    expect(Buffer.from(await read.arrayBuffer())).toEqual(bytes);
    const action = { platform: 'slack', scope: 'slack:files.read', method: 'GET', endpoint };
    expect((await agent.act(action)).body.data).toBe(bytes.toString('base64'));
    expect(files.seen.map(({ target, headers }) => [target, headers.authorization])).toEqual([
      [`/slack-files${endpoint}`, `Bearer ${CANARY}`],
      [`/slack-files${endpoint}`, `Bearer ${CANARY}`],
    ]);
  });

  test('under run, Slack’s client uploads a file through the sidecar', async () => {
    api.answer = ({ url = '' }, response) => {
      const told = url.endsWith('getUploadURLExternal')
        ? { ok: true, upload_url: `${files.url}/slack-files/upload/v1/Q0FTVA?x=1`, file_id: 'F1' }
        : { ok: true, files: [{ id: 'F1' }] };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(told));
    };
    files.answer = (_, response) => response.writeHead(200, { 'content-type': 'text/plain' }).end('OK - 12');
    files.seen.length = 0;
    const program = `
      const { WebClient } = require('module').createRequire('${import.meta.dirname}/package.json')('@slack/web-api');
      const { SLACK_BOT_TOKEN, SLACK_API_URL } = process.env;
      new WebClient(SLACK_BOT_TOKEN, { slackApiUrl: SLACK_API_URL, retryConfig: { retries: 0 } })
        .filesUploadV2({ filename: 'a.txt', content: 'what is sent', channel_id: 'C1' })
        .then(({ ok }) => console.log(ok));`;
    const ended = await run(profileOf(agent), ['--', process.execPath, '-e', program]);
    expect(ended, ended.stderr).toMatchObject({ code: 0, stdout: 'true\n' });
    expect(files.seen).toMatchObject([{ method: 'POST', target: '/slack-files/upload/v1/Q0FTVA?x=1' }]);
    expect(files.seen[0]?.body).toContain('what is sent');
  });

  test('Slack’s client uploads a file, and sends the agent’s token to no other host', async () => {
    const { WebClient } = load('@slack/web-api');
    const token = agent.token();
    const slack = new WebClient(token, { slackApiUrl: `${world.running.baseUrl}/proxy/slack-main/` });
    let uploads = `${files.url}/slack-files`;
    api.answer = ({ url = '' }, response) => {
      const told = url.endsWith('getUploadURLExternal')
        ? { ok: true, upload_url: `${uploads}/upload/v1/Q0FTVA?x=1`, file_id: 'F1' }
        : { ok: true, files: [{ id: 'F1' }] };
      // Slack escapes slashes in JSON.
      response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' });
      response.end(JSON.stringify(told).replaceAll('/', '\\/'));
    };
    files.answer = (_, response) => response.writeHead(200, { 'content-type': 'text/plain' }).end('OK - 12');
    files.seen.length = 0;
    const file = { filename: 'a.txt', content: 'what is sent', channel_id: 'C1' };
    expect(await slack.filesUploadV2(file)).toMatchObject({ ok: true, files: [{ ok: true, files: [{ id: 'F1' }] }] });
    expect(files.seen).toMatchObject([{ method: 'POST', target: '/slack-files/upload/v1/Q0FTVA?x=1' }]);
    expect(files.seen[0]?.body).toContain('what is sent');
    expect(files.seen[0]?.headers.authorization).toBe(`Bearer ${CANARY}`);
    expect(files.seen[0]?.rawHeaders.join('\n')).not.toContain(token);
    // A host that is not in the manifest.
    uploads = `${files.url}/another`;
    await expect(slack.filesUploadV2(file)).rejects.toThrow('No upload url found');
    // A refused upload, the second of three steps, ends the transfer, and the error has the reason.
    uploads = `${files.url}/slack-files`;
    for (const [effect, code] of [
      ['deny', 'denied_by_policy'],
      ['require_approval', 'approval_pending'],
    ]) {
      const refused = await organisation.agent({
        rules: [{ effect: 'allow' }, { effect, endpoints: ['/upload/**'] }],
        grants: slackGrant,
      });
      const client = new WebClient(refused.token(), {
        slackApiUrl: `${world.running.baseUrl}/proxy/slack-main/`,
        headers: { 'X-Svc-Wait': '0' },
      });
      const seen = api.seen.length;
      await expect(client.filesUploadV2(file)).rejects.toThrow(`agent-broker: ${code}: `);
      expect(api.seen.length).toBe(seen + 1);
    }
    // An answer that is too long to be rewritten is blocked.
    uploads = `${files.url}/slack-files`;
    const { answer } = api;
    api.answer = (request, response, body) => {
      response.write(`{"padding":"${'x'.repeat(4.5 * MIB)}",`);
      answer?.(request, Object.assign(response, { writeHead: () => response }), body);
    };
    const long = await fetch(`${world.running.baseUrl}/proxy/slack-main/files.getUploadURLExternal`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: new URLSearchParams({ filename: 'a.txt', length: '1' }),
    });
    expect(await long.json()).toEqual({ ok: false, error: expect.stringContaining('upstream_response_blocked') });
    expect(files.seen).toHaveLength(1);
  });

  describe('objects of S3', () => {
    const put = (connection: string, size: number) => {
      const { S3Client, PutObjectCommand } = load('@aws-sdk/client-s3');
      const s3 = new S3Client({
        endpoint: `${world.running.baseUrl}/proxy/${connection}`,
        region: 'us-east-1',
        forcePathStyle: true,
        credentials: { accessKeyId: 'AKIAPLACEHOLDER', secretAccessKey: 'placeholder' },
        maxAttempts: 1,
      });
      // biome-ignore lint/suspicious/noExplicitAny: the clients are not installed where this is checked.
      const authorize = (next: any) => (given: any) => {
        given.request.headers['x-svc-authorization'] = `Bearer ${agent.token()}`;
        return next(given);
      };
      s3.middlewareStack.add(authorize, { step: 'build' });
      return s3.send(new PutObjectCommand({ Bucket: 'bucket', Key: 'a.bin', Body: Buffer.alloc(size, 'x') }));
    };
    /** Returns the size of the last request's body, and the problem of its signature. */
    const lastOf = ({ seen }: Upstream, unsigned: boolean) => {
      const { target, body, ...last } = seen.at(-1)!;
      const at = { region: 'us-east-1', service: 's3', now: Date.now(), unsigned };
      return [body.length, awsProblem({ ...last, target, body: Buffer.from(body) }, KEY, at)];
    };
    test.each([
      [2 * MIB, false],
      [20 * MIB, true],
    ])('the SDK uploads %i bytes, with the hash of the body left out of the signature: %s', async (size, unsigned) => {
      files.answer = (_, response) => response.writeHead(200).end();
      await put('s3-main', size);
      expect(lastOf(files, unsigned)).toEqual([size, undefined]);
    });

    test('without TLS, at most 8 MiB are sent', async () => {
      api.answer = (_, response) => response.writeHead(200).end();
      await put('plain-main', 2 * MIB);
      expect(lastOf(api, false)).toEqual([2 * MIB, undefined]);
      const before = api.seen.length;
      await expect(put('plain-main', 20 * MIB)).rejects.toMatchObject({
        $metadata: { httpStatusCode: 413 },
        message: expect.stringContaining('at most 8 MiB'),
      });
      expect(api.seen).toHaveLength(before);
    });
  });

  test('OpenAI’s client uploads a file, and a JSON action uploads the same file', async () => {
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
