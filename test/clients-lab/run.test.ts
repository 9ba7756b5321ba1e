/** The clients under `agent-broker run`, configured only by the variables that it sets. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { manifestOf } from '../platforms/classified.ts';
import { profileOf, run, sh } from '../sidecar/run-world.ts';
import { ALLOW_ALL, CANARY, shared } from '../world/world.ts';
import { withoutLab } from './installed.ts';
import { givenLab } from './lab-world.ts';

/** Each client as its users create it; where a client takes its URL only as an option, the program passes the variable on. */
const PROGRAM = `
  import { createRequire } from 'node:module';
  import { execFileSync } from 'node:child_process';
  import { readFileSync } from 'node:fs';
  const load = createRequire('${import.meta.dirname}/package.json');
  const { env } = process;
  const at = (from, to) => (url, init) => fetch(String(url).replace(from, to), init);
  const { OpenAI } = load('openai');
  const { Anthropic } = load('@anthropic-ai/sdk');
  const { WebClient } = load('@slack/web-api');
  const { Octokit } = load('@octokit/rest');
  const { S3Client, ListObjectsV2Command } = load('@aws-sdk/client-s3');
  const { Client } = load('@notionhq/client');
  const { LinearClient } = load('@linear/sdk');
  const Stripe = load('stripe').default ?? load('stripe');
  const clients = {
    OPENAI_BASE_URL: async () => (await new OpenAI().models.list()).data[0].id,
    ANTHROPIC_BASE_URL: async () => (await new Anthropic().models.list()).data[0].id,
    SLACK_API_URL: async () => (await new WebClient(env.SLACK_BOT_TOKEN, { slackApiUrl: env.SLACK_API_URL }).conversations.list({})).channels[0].id,
    GITHUB_API_URL: async () => (await new Octokit({ auth: env.GITHUB_TOKEN, baseUrl: env.GITHUB_API_URL }).rest.repos.get({ owner: 'acme', repo: 'app' })).data.full_name,
    GITHUB_GRAPHQL_URL: async () => {
      const headers = { authorization: 'bearer ' + env.GITHUB_TOKEN, 'content-type': 'application/json' };
      const answer = await fetch(env.GITHUB_GRAPHQL_URL, { method: 'POST', headers, body: '{"query":"{ viewer { login } }"}' });
      return (await answer.json()).data.viewer.login;
    },
    AWS_ENDPOINT_URL_S3: async () => (await new S3Client({ forcePathStyle: true }).send(new ListObjectsV2Command({ Bucket: 'bucket' }))).KeyCount,
    AWS_ENDPOINT_URL: async () => {
      delete env.AWS_ENDPOINT_URL_S3;
      return (await new S3Client({ forcePathStyle: true }).send(new ListObjectsV2Command({ Bucket: 'bucket' }))).KeyCount;
    },
    NOTION_BASE_URL: async () => (await new Client({ auth: env.NOTION_TOKEN, fetch: at('https://api.notion.com/v1', env.NOTION_BASE_URL) }).pages.retrieve({ page_id: 'page-1' })).id,
    LINEAR_API_URL: async () => (await new LinearClient({ apiKey: env.LINEAR_API_KEY, apiUrl: env.LINEAR_API_URL }).viewer).id,
    STRIPE_API_BASE: async () =>
      (await new Stripe(env.STRIPE_SECRET_KEY, { httpClient: Stripe.createFetchHttpClient(at('https://api.stripe.com', env.STRIPE_API_BASE)) }).customers.retrieve('cus_1')).name,
    PIP_INDEX_URL: async () => (await fetch(env.PIP_INDEX_URL + 'left/')).status,
    HF_ENDPOINT: async () => (await fetch(env.HF_ENDPOINT + '/api/models', { headers: { authorization: 'Bearer ' + env.HF_TOKEN } })).status,
    GOOGLE_GEMINI_BASE_URL: async () => (await fetch(env.GOOGLE_GEMINI_BASE_URL + '/v1beta/models', { headers: { 'x-goog-api-key': env.GEMINI_API_KEY } })).status,
  };
  const told = {};
  for (const [name, ask] of Object.entries(clients)) told[name] = await ask().catch((error) => String(error));
  const environments = [readFileSync('/proc/self/environ', 'latin1'), execFileSync('cat', ['/proc/self/environ'], { encoding: 'latin1' }), JSON.stringify(env)];
  console.log(JSON.stringify({ told, environments, parent: readFileSync('/proc/' + process.ppid + '/environ', 'latin1') }));
`;

describe.skipIf(withoutLab)(`clients under run${withoutLab ? ` (skipped: ${withoutLab})` : ''}`, () => {
  const { world, organisation } = givenLab();
  const agent = shared(async () => {
    const grants: Record<string, object> = {};
    for (const name of ['openai', 'anthropic', 'slack', 'github', 's3', 'notion', 'linear', 'stripe'] as const)
      grants[name] = { scopeList: Object.keys(manifestOf(name).scopes) };
    for (const id of ['pypi', 'huggingface', 'gemini']) {
      const manifest = {
        kind: 'rest',
        base_url: `${world.upstream.url}/${id}`,
        scopes: { [`${id}:read`]: ['GET /**'] },
      };
      await organisation.platform({ id, manifest: manifest as never });
      grants[id] = { scopeList: [`${id}:read`] };
    }
    return await organisation.agent({ rules: ALLOW_ALL, grants });
  });
  const program = ['--', process.execPath, '--input-type=module', '-e', PROGRAM];

  test("every client finds its platform by its variables, and no environment contains the platform's real key", async () => {
    const answer = world.upstream.answer;
    world.upstream.answer = (request, response, body) => {
      const { url = '' } = request;
      const other = url.startsWith('/github/graphql')
        ? '{"data":{"viewer":{"login":"octo"}}}'
        : /^\/(?:pypi|huggingface|gemini)/.test(url) && '[]';
      if (!other) return answer?.(request, response, body);
      expect(request.headers.authorization).toBe(`Bearer ${CANARY}`);
      response.writeHead(200, { 'content-type': 'application/json' }).end(other);
    };
    const ended = await run(profileOf(agent), program);
    expect(ended.code, ended.stderr).toBe(0);
    const { told, environments, parent } = JSON.parse(ended.stdout);
    expect(told).toEqual({
      OPENAI_BASE_URL: 'gpt-x',
      ANTHROPIC_BASE_URL: 'claude-x',
      SLACK_API_URL: 'C1',
      GITHUB_API_URL: 'acme/app',
      GITHUB_GRAPHQL_URL: 'octo',
      AWS_ENDPOINT_URL_S3: 1,
      AWS_ENDPOINT_URL: 1,
      NOTION_BASE_URL: 'page-1',
      LINEAR_API_URL: 'u1',
      STRIPE_API_BASE: 'Ann',
      PIP_INDEX_URL: 200,
      HF_ENDPOINT: 200,
      GOOGLE_GEMINI_BASE_URL: 200,
    });
    expect(environments).toHaveLength(3);
    for (const environment of [...environments, parent]) {
      expect(environment).toContain('PATH');
      expect(environment).not.toContain(CANARY);
      expect(environment).not.toContain('PRIVATE KEY');
    }
  });

  test('a client that expects the version in ANTHROPIC_BASE_URL, as the AI SDK does, gets it', async () => {
    const script = `for path in /models /v1/models /v1x '?a'; do
      curl -s -o /dev/null -H "x-api-key: $ANTHROPIC_API_KEY" "$ANTHROPIC_BASE_URL$path"; done`;
    await run(profileOf(agent), ['--connection', 'anthropic', ...sh(script)]);
    const targets = world.upstream.seen.map(({ target }) => target);
    expect(targets.slice(-2)).toEqual(['/anthropic/v1/models', '/anthropic/v1/models']);
  });

  test('an error of the sidecar itself reaches the client with its reason, and the call is sent once', async () => {
    // A server between the sidecar and the broker, which closes the connection of every call.
    const cut: string[] = [];
    const between = createServer(({ method = '', url = '', headers, socket }, response) => {
      if (url.startsWith('/proxy/')) {
        cut.push(url.split('/')[2] ?? '');
        return void socket.destroy();
      }
      const asked = { method, headers: { authorization: headers.authorization ?? '' } };
      void fetch(`${world.running.baseUrl}${url}`, asked).then(async (answer) => {
        response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' });
        response.end(await answer.text());
      });
    }).listen(0, '127.0.0.1');
    await once(between, 'listening');
    onTestFinished(() => void between.close().closeAllConnections());
    const url = `http://127.0.0.1:${(between.address() as AddressInfo).port}`;
    const ended = await run(profileOf(agent, url), program);
    expect(ended.code, ended.stderr).toBe(0);
    const { told } = JSON.parse(ended.stdout);
    const why = expect.stringMatching(
      /agent-broker: broker_unreachable: The broker at \S+ did not answer \(ECONNRESET\)\. The call may have been made/,
    );
    const {
      GITHUB_GRAPHQL_URL: _,
      PIP_INDEX_URL: pip,
      HF_ENDPOINT: hub,
      GOOGLE_GEMINI_BASE_URL: gemini,
      ...clients
    } = told;
    expect([pip, hub, gemini]).toEqual([502, 502, 502]);
    expect(clients).toEqual(Object.fromEntries(Object.keys(clients).map((name) => [name, why])));
    expect(Object.keys(clients)).toHaveLength(9);
    // AWS's client retries after any error.
    const others = cut.filter((connection) => connection !== 's3');
    expect(others.sort()).toEqual([
      'anthropic',
      'gemini-main',
      'github',
      'github',
      'huggingface-main',
      'linear',
      'notion',
      'openai',
      'pypi-main',
      'slack',
      'stripe',
    ]);
    expect(world.upstream.seen).toEqual([]);
  });
});
