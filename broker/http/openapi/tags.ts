/** Groups the routes of the agents' OpenAPI document by the headings of the specification. */
import { present } from '../../runtime/present.ts';
import type { Route } from '../route.ts';
import type { Tag } from './document.ts';

type Part = Required<Tag> & { paths: RegExp };

/** In order of precedence: the first pattern that matches a path wins. */
const PARTS: readonly Part[] = [
  {
    name: 'Governed calls',
    description: 'One call to a connected platform. The broker decides, holds, forwards and records it.',
    paths: /^\/v1\/(actions|bind-secret)$/,
  },
  {
    name: 'Git',
    description: 'Clone, fetch and push through the broker, governed like any other call.',
    paths: /^\/git\//,
  },
  {
    name: 'Permissions',
    description: 'What an agent may do now: three forms of query, decided exactly as calls are.',
    paths: /^\/v1\/(agent\/permissions|authzen|trqp)|^\/access\//,
  },
  {
    name: 'Approvals',
    description: 'Calls that wait for a person: what became of them, and approving them with a passkey.',
    paths: /^\/v1\/(approvals|agents\/me\/pending-actions)/,
  },
  {
    name: 'Access requests',
    description: 'An agent asks its owners for a scope or a platform.',
    paths: /^\/v1\/access-request/,
  },
  {
    name: 'Consent',
    description: 'A person connects an own account, on platforms that hold one token per person.',
    paths: /^\/v1\/consent\//,
  },
  {
    name: 'Registration',
    description: 'How an agent comes to be: it registers itself, or it was invited, and brings its key.',
    paths: /^\/v1\/(register|invites|agents\/bind)/,
  },
  {
    name: 'Agents',
    description: 'An agent about itself: who it is, its children, and reporting what it did not expect.',
    paths: /^\/v1\/agents\//,
  },
  {
    name: 'Receipts',
    description: 'The signed receipt of each decision, and the log that they are in.',
    paths: /^\/v1\/audit\/|^\/orgs\//,
  },
  {
    name: 'Lab',
    description: 'A small MCP server to try a client against. It holds no secrets.',
    paths: /^\/lab\//,
  },
  {
    name: 'Discovery',
    description: 'What anyone may read: keys, identity documents, metadata, this document.',
    paths: /^\//,
  },
];

export const AGENT_TAGS = {
  all: PARTS.map(({ name, description }) => ({ name, description })),
  of: ({ path }: Route): string =>
    present(
      PARTS.find(({ paths }) => paths.test(path)),
      `tag of ${path}`,
    ).name,
};
