/** The guides that a broker serves under /docs: pages of docs/, by name, in the order in which one reads them. */

export type Guide = { name: string; title: string; about: string };

export const GUIDES: readonly Guide[] = [
  { name: 'getting-started', title: 'Getting started', about: 'The first call, the first real platform.' },
  { name: 'agents', title: 'Agents', about: 'Tokens, POST /v1/actions, every answer and what to do next.' },
  { name: 'approvals', title: 'Approvals', about: 'Calls that wait for a person, and the page that shows them.' },
  { name: 'console', title: 'The console', about: 'The inbox, its keys, agents and activity.' },
  { name: 'governance', title: 'Governance as code', about: 'The file, policies, guardrails, conditions.' },
  { name: 'platforms', title: 'Platforms', about: 'The built-in ones, and writing your own.' },
  {
    name: 'owner-api',
    title: 'Owner API',
    about: 'What people and their programs do: decide, suspend, connect, audit.',
  },
  { name: 'receipts', title: 'Receipts', about: 'What they hold, and verifying them offline.' },
  { name: 'operations', title: 'Operations', about: 'Settings, PostgreSQL and replicas, keys, backups.' },
  { name: 'security', title: 'Security', about: 'What is promised, with the test that shows it, and what is not.' },
  { name: 'architecture', title: 'Architecture', about: 'Where things live, and why.' },
  { name: 'changelog', title: 'Changelog', about: 'What there is, and since when.' },
];
