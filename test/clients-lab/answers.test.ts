/** Answers that a client processes further: pages whose links it follows, and events that it reads as a stream. */
import { describe, expect, test } from 'vitest';
import { CANARY } from '../world/world.ts';
import { load, withoutLab } from './installed.ts';
import { givenLab } from './lab-world.ts';

describe.skipIf(withoutLab)(`paged and streamed answers${withoutLab ? ` (skipped: ${withoutLab})` : ''}`, () => {
  const { world, agent, approve } = givenLab();

  test('Octokit follows the Link of a page through the broker', async () => {
    const { Octokit } = load('@octokit/rest');
    const holder = await agent('github', { without: 'codehost:repo.delete', heldScope: 'codehost:issues.write' });
    world.upstream.answer = ({ url = '' }, response) => {
      const isLast = url.includes('page=2');
      const next = `${world.upstream.url}/github/repos/acme/app/issues?per_page=1&page=2`;
      response.writeHead(200, {
        'content-type': 'application/json',
        ...(!isLast && { link: `<${next}>; rel="next"` }),
      });
      response.end(JSON.stringify([{ number: isLast ? 2 : 1 }]));
    };
    const octokit = new Octokit({ auth: holder.token(), baseUrl: `${world.running.baseUrl}/proxy/github` });
    const issues = await octokit.paginate(octokit.rest.issues.listForRepo, { owner: 'acme', repo: 'app', per_page: 1 });
    expect(issues).toMatchObject([{ number: 1 }, { number: 2 }]);
    // The broker made both requests; the agent never gets the platform's own address.
    for (const { headers } of world.upstream.seen) expect(headers.authorization).toBe(`Bearer ${CANARY}`);
    expect(world.upstream.seen.map(({ target }) => target)).toEqual([
      '/github/repos/acme/app/issues?per_page=1',
      '/github/repos/acme/app/issues?per_page=1&page=2',
    ]);
  });

  test('OpenAI’s client reads a completion as a stream', async () => {
    const { OpenAI } = load('openai');
    const holder = await agent('openai', { without: 'openai:files.delete', heldScope: 'openai:files.write' });
    let proceed = () => {};
    world.upstream.answer = (_, response) => {
      const event = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(event('Good'));
      // The rest is sent once the client has read this event.
      proceed = () => response.end(`${event(' morning')}data: [DONE]\n\n`);
    };
    const openai = new OpenAI({ apiKey: holder.token(), baseURL: `${world.running.baseUrl}/proxy/openai` });
    const messages = [{ role: 'user', content: 'Hello' }];
    const stream = await openai.chat.completions.create({ model: 'gpt-x', messages, stream: true });
    const read: string[] = [];
    for await (const { choices } of stream) {
      read.push(choices[0].delta.content);
      proceed();
    }
    expect(read).toEqual(['Good', ' morning']);
  });

  test('OpenAI’s client reads a completion that was held, with all of its events', async () => {
    const { OpenAI } = load('openai');
    const holder = await agent('openai', { without: 'openai:files.delete', heldScope: 'openai:inference.run' });
    const event = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
    world.upstream.answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(event('Good'));
      setTimeout(() => response.end(`${event(' morning')}data: [DONE]\n\n`), 100);
    };
    const openai = new OpenAI({ apiKey: holder.token(), baseURL: `${world.running.baseUrl}/proxy/openai` });
    const messages = [{ role: 'user', content: 'Hello' }];
    const ask = (wait: string) =>
      openai.chat.completions.create({ model: 'gpt-x', messages, stream: true }, { headers: { 'X-Svc-Wait': wait } });
    const refusal: unknown = await ask('0').catch((error: unknown) => error);
    await approve((refusal as Error).message);
    const stream = await ask('10');
    const read: string[] = [];
    for await (const { choices } of stream) read.push(choices[0].delta.content);
    expect(read).toEqual(['Good', ' morning']);
    expect(world.upstream.seen.map(({ body }) => JSON.parse(body).stream)).toEqual([true]);
  });
});
