/** The clients of the lab: how each is created by its line of docs/unmodified.md, and which calls it makes. */
import type { BuiltinName } from '../../broker/platforms/builtin-names.ts';
import { lineOf, load } from './installed.ts';

type Headers = Record<string, string>;

export type Client = {
  /** The name in its row of the page. */
  name: string;
  platform: BuiltinName;
  /** Values for the names in the line, so that the client sends these headers with every call. */
  names: (headers: Headers) => Record<string, unknown>;
  /** For clients without such a name: adds headers to every call of a client that exists already. */
  // biome-ignore lint/suspicious/noExplicitAny: the clients are not installed where this is checked.
  always?: (client: any, headers: Headers) => void;
  read: Call;
  /** A call in a scope that the agent does not hold: `without`. */
  refused: Omit<Call, 'is'>;
  without: string;
  /** A call in the one scope whose calls are held. */
  held: Call;
  heldScope: string;
};
// biome-ignore lint/suspicious/noExplicitAny: the clients are not installed where this is checked.
type Call = { call: (client: any) => Promise<unknown>; is: unknown };

/** Returns a subclass that adds one option. */
// biome-ignore lint/suspicious/noExplicitAny: as above.
const withOption = (Class: any, at: number, option: Record<string, unknown>) =>
  class extends Class {
    constructor(...args: unknown[]) {
      super(...args.with(at, { ...(args[at] as object), ...option }));
    }
  };

const fetchWith =
  (headers: Headers): typeof fetch =>
  (url, init) => {
    const sent = new Headers(init?.headers);
    for (const [name, value] of Object.entries(headers)) sent.set(name, value);
    return fetch(url, { ...init, headers: sent });
  };

const asked = [{ role: 'user', content: 'Hello' }];

/** Creates a client by its line, with these headers on each of its calls. `baseUrl`: of the broker. */
export function madeByLine({ name, names, always }: Client, token: string, baseUrl: string, headers: Headers): unknown {
  const known = { ...names(headers), TOKEN: token };
  const make = new Function(...Object.keys(known), `return ${lineOf(name, baseUrl)}`);
  const client = make(...Object.values(known));
  always?.(client, headers);
  return client;
}

export const CLIENTS: Client[] = [
  {
    name: '@octokit/rest',
    platform: 'github',
    names: () => ({ Octokit: load('@octokit/rest').Octokit }),
    always: (octokit, headers) =>
      octokit.hook.before('request', (options: { headers: Headers }) => void Object.assign(options.headers, headers)),
    read: {
      call: async (octokit) => (await octokit.rest.repos.get({ owner: 'acme', repo: 'app' })).data,
      is: { full_name: 'acme/app', stargazers_count: 42 },
    },
    refused: { call: (octokit) => octokit.rest.repos.delete({ owner: 'acme', repo: 'app' }) },
    without: 'codehost:repo.delete',
    held: {
      call: async (octokit) =>
        (await octokit.rest.issues.create({ owner: 'acme', repo: 'app', title: 'It breaks' })).data,
      is: { number: 7, title: 'It breaks' },
    },
    heldScope: 'codehost:issues.write',
  },
  {
    name: '@slack/web-api',
    platform: 'slack',
    names: (headers) => ({ WebClient: withOption(load('@slack/web-api').WebClient, 1, { headers }) }),
    read: {
      call: (slack) => slack.conversations.list({ limit: 10 }),
      is: { ok: true, channels: [{ id: 'C1', name: 'general' }] },
    },
    refused: { call: (slack) => slack.chat.delete({ channel: 'C1', ts: '1.2' }) },
    without: 'slack:messages.delete',
    held: {
      call: (slack) => slack.chat.postMessage({ channel: 'C1', text: 'Good morning' }),
      is: { ok: true, ts: '1.2', message: { text: 'Good morning' } },
    },
    heldScope: 'slack:messages.write',
  },
  {
    name: 'stripe',
    platform: 'stripe',
    names: (headers) => ({ Stripe: load('stripe').default ?? load('stripe'), fetch: fetchWith(headers) }),
    read: { call: (stripe) => stripe.customers.retrieve('cus_1'), is: { id: 'cus_1', name: 'Ann' } },
    refused: { call: (stripe) => stripe.customers.del('cus_1') },
    without: 'stripe:customers.delete',
    held: {
      call: (stripe) => stripe.customers.create({ name: 'Bob', metadata: { plan: 'x' } }),
      is: { id: 'cus_2', name: 'Bob' },
    },
    heldScope: 'stripe:customers.write',
  },
  {
    name: 'openai',
    platform: 'openai',
    names: (defaultHeaders) => ({ OpenAI: withOption(load('openai').OpenAI, 0, { defaultHeaders }) }),
    read: { call: async (openai) => (await openai.models.list()).data, is: [{ id: 'gpt-x' }] },
    refused: { call: (openai) => openai.files.delete('file-1') },
    without: 'openai:files.delete',
    held: {
      call: (openai) => openai.chat.completions.create({ model: 'gpt-x', messages: asked }),
      is: { model: 'gpt-x', choices: [{ message: { content: 'Hi' } }] },
    },
    heldScope: 'openai:inference.run',
  },
  {
    name: '@anthropic-ai/sdk',
    platform: 'anthropic',
    names: (defaultHeaders) => ({ Anthropic: withOption(load('@anthropic-ai/sdk').Anthropic, 0, { defaultHeaders }) }),
    read: { call: async (anthropic) => (await anthropic.models.list()).data, is: [{ id: 'claude-x' }] },
    refused: { call: (anthropic) => anthropic.messages.batches.delete('batch_1') },
    without: 'anthropic:batches.delete',
    held: {
      call: (anthropic) => anthropic.messages.create({ model: 'claude-x', max_tokens: 9, messages: asked }),
      is: { model: 'claude-x', content: [{ type: 'text', text: 'Hi' }] },
    },
    heldScope: 'anthropic:inference.run',
  },
  {
    name: '@notionhq/client',
    platform: 'notion',
    names: (headers) => ({ Client: load('@notionhq/client').Client, fetch: fetchWith(headers) }),
    read: { call: (notion) => notion.pages.retrieve({ page_id: 'page-1' }), is: { object: 'page', id: 'page-1' } },
    refused: { call: (notion) => notion.blocks.delete({ block_id: 'block-1' }) },
    without: 'notion:blocks.delete',
    held: {
      call: (notion) => notion.pages.create({ parent: { page_id: 'page-0' }, properties: {} }),
      is: { object: 'page', id: 'page-1' },
    },
    heldScope: 'notion:pages.write',
  },
  {
    name: '@linear/sdk',
    platform: 'linear',
    names: (headers) => ({ LinearClient: withOption(load('@linear/sdk').LinearClient, 0, { headers }) }),
    read: { call: (linear) => linear.viewer, is: { id: 'u1', name: 'Ann' } },
    refused: { call: (linear) => linear.deleteIssue('i1') },
    without: 'linear:issues.delete',
    held: {
      call: (linear) => linear.createIssue({ teamId: 't1', title: 'It breaks' }),
      is: { success: true, lastSyncId: 5 },
    },
    heldScope: 'linear:issues.create',
  },
  {
    name: '@googleapis/gmail',
    platform: 'gmail',
    names: (headers) => ({ gmail: load('@googleapis/gmail').gmail, fetch: fetchWith(headers) }),
    read: {
      call: async (gmail) => (await gmail.users.messages.list({ userId: 'me' })).data,
      is: { messages: [{ id: 'm1' }] },
    },
    refused: { call: (gmail) => gmail.users.messages.delete({ userId: 'me', id: 'm1' }) },
    without: 'gmail:messages.delete',
    held: {
      call: async (gmail) => (await gmail.users.messages.send({ userId: 'me', requestBody: { raw: RAW_MAIL } })).data,
      is: { id: 'm1', labelIds: ['SENT'] },
    },
    heldScope: 'gmail:messages.send',
  },
  {
    name: '@aws-sdk/client-s3',
    platform: 's3',
    names: () => load('@aws-sdk/client-s3'),
    always: (s3, headers) =>
      s3.middlewareStack.add(
        (next: (given: object) => unknown) => (given: { request: { headers: Headers } }) => {
          Object.assign(given.request.headers, headers);
          return next(given);
        },
        { step: 'build' },
      ),
    read: {
      call: (s3) => s3.send(new (load('@aws-sdk/client-s3').ListObjectsV2Command)({ Bucket: 'bucket' })),
      is: { KeyCount: 1, Contents: [{ Key: 'a.txt', Size: 3 }] },
    },
    refused: {
      call: (s3) => s3.send(new (load('@aws-sdk/client-s3').DeleteObjectCommand)({ Bucket: 'bucket', Key: 'a.txt' })),
    },
    without: 's3:objects.delete',
    held: {
      call: (s3) =>
        s3.send(
          new (load('@aws-sdk/client-s3').PutObjectCommand)({ Bucket: 'bucket', Key: 'new.txt', Body: 'new text' }),
        ),
      is: { $metadata: { httpStatusCode: 200 } },
    },
    heldScope: 's3:objects.write',
  },
];

const RAW_MAIL = Buffer.from('To: bob@acme.example\r\nSubject: Hello\r\n\r\nHello\r\n').toString('base64url');
