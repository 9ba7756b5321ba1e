/** /issues and /issues/{number}/comments. */
import { z } from 'zod';
import { full, notFound, PAGING, pageOf, type Route, route } from './route.ts';
import { type Issue, MAX_PER_KIND, type World } from './world.ts';

const TITLE = z.string().trim().min(1).max(200);
const TEXT = z.string().max(10_000);
const LABELS = z.array(z.string().trim().min(1).max(50)).max(20);

const ListQuery = z.strictObject({ state: z.enum(['open', 'closed', 'all']).default('open'), ...PAGING });
const NewIssue = z.strictObject({ title: TITLE, body: TEXT.default(''), labels: LABELS.default([]) });
const IssueChange = z
  .strictObject({ title: TITLE, body: TEXT, labels: LABELS, state: z.enum(['open', 'closed']) })
  .partial()
  .refine((change) => Object.keys(change).length > 0, 'name at least one of title, body, labels, state');
const NewComment = z.strictObject({ text: TEXT.min(1) });

/** The routes of issues and their comments. Lists are newest first; `state` is `open` unless asked otherwise. */
export function issueRoutes(world: World): Route[] {
  const find = (text: string | undefined) => world.issues.get(numberOf(text));
  return [
    route({
      method: 'GET',
      path: '/issues',
      query: ListQuery,
      handle({ query }) {
        const all = [...world.issues.values()].reverse();
        const asked = query.state === 'all' ? all : all.filter((issue) => issue.state === query.state);
        return pageOf(asked, query);
      },
    }),
    route({
      method: 'POST',
      path: '/issues',
      body: NewIssue,
      handle({ body }) {
        if (world.issues.size >= MAX_PER_KIND) return full('issues', MAX_PER_KIND);
        const number = world.next('issue');
        const moment = world.now();
        const issue: Issue = {
          number,
          ...body,
          state: 'open',
          author: 'agent',
          created_at: moment,
          updated_at: moment,
        };
        world.issues.set(number, issue);
        return { status: 201, body: issue, headers: { location: `/issues/${number}` } };
      },
    }),
    route({
      method: 'GET',
      path: '/issues/{number}',
      handle({ params: [number] }) {
        const issue = find(number);
        return issue ? { status: 200, body: issue } : notFound(`issue ${shown(number)}`);
      },
    }),
    route({
      method: 'PATCH',
      path: '/issues/{number}',
      body: IssueChange,
      handle({ params: [number], body }) {
        const issue = find(number);
        if (!issue) return notFound(`issue ${shown(number)}`);
        Object.assign(issue, body, { updated_at: world.now() });
        return { status: 200, body: issue };
      },
    }),
    route({
      method: 'DELETE',
      path: '/issues/{number}',
      handle({ params: [number] }) {
        const issue = find(number);
        if (!issue) return notFound(`issue ${shown(number)}`);
        world.issues.delete(issue.number);
        world.comments = world.comments.filter((comment) => comment.issue !== issue.number);
        return { status: 204 };
      },
    }),
    route({
      method: 'GET',
      path: '/issues/{number}/comments',
      query: z.strictObject(PAGING),
      handle({ params: [number], query }) {
        const issue = find(number);
        if (!issue) return notFound(`issue ${shown(number)}`);
        return pageOf(
          world.comments.filter((comment) => comment.issue === issue.number),
          query,
        );
      },
    }),
    route({
      method: 'POST',
      path: '/issues/{number}/comments',
      body: NewComment,
      handle({ params: [number], body }) {
        const issue = find(number);
        if (!issue) return notFound(`issue ${shown(number)}`);
        if (world.comments.length >= MAX_PER_KIND) return full('comments', MAX_PER_KIND);
        const written = { author: 'agent', text: body.text, created_at: world.now() };
        const comment = { id: world.next('comment'), issue: issue.number, ...written };
        world.comments.push(comment);
        return { status: 201, body: comment };
      },
    }),
  ];
}

function numberOf(text = ''): number {
  return /^[1-9][0-9]{0,8}$/.test(text) ? Number(text) : Number.NaN;
}

/** A path parameter for an error text, truncated so that the response size does not depend on the request. */
function shown(text = ''): string {
  return JSON.stringify(text.slice(0, 40));
}
