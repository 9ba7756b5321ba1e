/**
 * Sentences for reads of the built-in platforms. Most are generated from the form of the path (sentences/read-template.ts): listed here are names that differ
 * from the path's spelling, and paths of other forms.
 */
import type { ReadWords } from '../../../sentences/read-template.ts';
import type { BuiltinName } from '../../builtin-names.ts';
import { githubReads, githubReadWords } from './github-reads.ts';
import { kubernetesReads } from './kubernetes.ts';
import { npmReads } from './npm.ts';
import { slackReads } from './slack-reads.ts';

type Reads = { words?: ReadWords; sentences?: Readonly<Record<string, string>> };

const MAILBOX = 'the mailbox **{1}**';

/** The introspection fields of every GraphQL API. */
const introspection = {
  'query __schema': 'read the schema of the API',
  'query __type': 'read the type[ **{/name}**] of the API',
  'query __typename': 'read the name of the root type',
};

const gmail: Reads = {
  words: {
    owners: { '/gmail/v1/users/*': MAILBOX, '/gmail/v1/users/*/settings': MAILBOX },
    words: { autoForwarding: 'forwarding settings', vacation: 'vacation reply', sendAs: 'sender addresses' },
  },
  sentences: {
    'GET /gmail/v1/users/*/messages': `list messages of ${MAILBOX}[, searched for *{?q}*]`,
    'GET /gmail/v1/users/*/threads': `list threads of ${MAILBOX}[, searched for *{?q}*]`,
    'GET /gmail/v1/users/*/settings/imap': `read the IMAP settings of ${MAILBOX}`,
    'GET /gmail/v1/users/*/settings/pop': `read the POP settings of ${MAILBOX}`,
  },
};

const calendar: Reads = {
  words: {
    owners: { '/users/me': 'the connected account' },
    words: { acl: 'access rules', calendarList: 'calendars' },
  },
  sentences: {
    'GET /calendars/*/events': 'list events of the calendar **{1}**[, searched for *{?q}*]',
    'GET /colors': 'list colours of calendars',
    'GET /users/me/settings': 'list the settings of the connected account',
    'GET /users/me/settings/*': 'read setting **{1}** of the connected account',
  },
};

const notion: Reads = {
  words: { words: { children: 'blocks' } },
  sentences: {
    'GET /pages/*/markdown': 'read page **{1}** as Markdown',
    'GET /comments': 'list comments[ on **{?block_id}**]',
  },
};

const linear: Reads = {
  sentences: {
    'query viewer': 'read the connected account',
    'query organization': 'read the organisation',
    'query issueVcsBranchSearch': 'find the issue of the branch[ **{/branchName}**]',
    'query issueSearch': 'search issues[ for *{/query}*]',
    'query attachmentsForURL': 'list attachments for[ **{/url}**| an address]',
    'query issuePriorityValues': 'list priorities of issues',
    'query notificationsUnreadCount': 'count unread notifications',
    'query emojis': 'list emojis',
  },
};

const jira: Reads = {
  words: {
    prefixes: ['/rest/api/3', '/rest/agile/1.0'],
    words: {
      remotelink: 'remote links',
      editmeta: 'editable fields',
      worklog: 'worklogs',
      comment: 'comments',
      changelog: 'change log',
      issuetype: 'issue types',
      issuetypes: 'issue types',
      issueLinkType: 'types of issue links',
      projectCategory: 'project categories',
      roledetails: 'roles',
      role: 'roles',
      version: 'versions',
      statuscategory: 'status categories',
      status: 'statuses',
      priority: 'priorities',
      label: 'labels',
      field: 'fields',
      filter: 'filters',
      dashboard: 'dashboards',
      board: 'boards',
      sprint: 'sprints',
      epic: 'epics',
      webhook: 'webhooks',
      context: 'contexts',
      workflows: 'workflows',
      resolution: 'resolutions',
    },
  },
  sentences: {
    'GET /rest/api/3/search/jql': 'search issues[ by *{?jql}*]',
    'GET /rest/api/3/issue/picker': 'suggest issues[ for *{?query}*]',
    'GET /rest/api/3/jql/autocompletedata': 'read the available fields of an issue search',
    'GET /rest/api/3/jql/autocompletedata/suggestions':
      'suggest values for a search of issues[, of the field {?fieldName}]',
    'GET /rest/api/3/issue/*/votes': 'read the votes for issue **{1}**',
    'GET /rest/api/3/issue/createmeta/*/issuetypes/**':
      'read what a new issue of project **{1}** needs[, for the type **{**}**]',
    'GET /rest/agile/1.0/issue/*/estimation': 'read the estimate of issue **{1}**',
    'GET /rest/api/3/version/*': 'read version **{1}**',
    'GET /rest/api/3/worklog/updated': 'list worklogs that were changed',
    'GET /rest/api/3/worklog/deleted': 'list worklogs that were deleted',
    'GET /rest/api/3/attachment/meta': 'read the settings of attachments',
    'GET /rest/api/3/attachment/content/*': 'read the content of attachment **{1}**',
    'GET /rest/api/3/attachment/thumbnail/*': 'read the thumbnail of attachment **{1}**',
    'GET /rest/api/3/project/search': 'search projects[ for *{?query}*]',
    'GET /rest/api/3/project/type/**': '[read **{**}** in|list] the types of projects',
    'GET /rest/api/3/myself': 'read the connected account',
    'GET /rest/api/3/mypermissions': 'read the permissions of the connected account',
    'GET /rest/api/3/user': 'read the user[ **{?accountId}**]',
    'GET /rest/api/3/user/bulk': 'read several users by their ids',
    'GET /rest/api/3/user/picker': 'suggest users[ for *{?query}*]',
    'GET /rest/api/3/user/search/**': 'search users[ for *{?query}*]',
    'GET /rest/api/3/user/assignable/*': 'list users to whom issues can be assigned',
    'GET /rest/api/3/user/permission/search': 'list users with permissions[: {?permissions}]',
    'GET /rest/api/3/user/viewissue/search': 'list users who see[ the issue **{?issueKey}**| issues]',
    'GET /rest/api/3/users/search': 'list all users',
    'GET /rest/api/3/group/member': 'list members of the group[ **{?groupname}**| **{?groupId}**]',
    'GET /rest/api/3/group/bulk': 'list groups',
    'GET /rest/api/3/groups/picker': 'suggest groups[ for *{?query}*]',
    'GET /rest/api/3/groupuserpicker': 'suggest users and groups[ for *{?query}*]',
    'GET /rest/api/3/serverInfo': 'read what runs there',
    'GET /rest/api/3/auditing/record': 'list audit records',
  },
};

const stripe: Reads = {
  words: {
    prefixes: ['/v1'],
    words: {
      payment_intents: 'payments',
      setup_intents: 'setups',
      invoiceitems: 'invoice items',
      application_fees: 'application fees',
      test_helpers: '',
      entitlements: '',
      reporting: '',
      sigma: 'Sigma',
      radar: 'Radar',
      apple_pay: 'Apple Pay',
      product_catalog: '',
      topups: 'top-ups',
    },
  },
  sentences: {
    'GET /v1/account': 'read the connected account',
    'GET /v1/balance': 'read the balance',
    'GET /v1/credit_notes/preview/**': 'preview[ **{**}** of] a credit note',
    'GET /v1/tax/associations/find': 'find a tax association[ of {?payment_intent}]',
    'GET /v1/billing/credit_balance_summary': 'read the summary of credit[ of {?customer}]',
    'GET /v1/subscriptions': 'list subscriptions[ of **{?customer}**]',
    'GET /v1/charges': 'list charges[ of **{?customer}**]',
    'GET /v1/invoices': 'list invoices[ of **{?customer}**]',
  },
};

const anthropic: Reads = {
  words: { prefixes: ['/v1'], words: { stream: 'event stream', messages: 'message' } },
  sentences: { 'GET /v1/sessions/*/events/stream': 'read the event stream of session **{1}**' },
};

const s3: Reads = {
  sentences: {
    'GET /': 'list buckets',
    'GET /*': 'list objects of the bucket **{1}**[ below **{?prefix}**], or read what the query names of it',
    'GET /*/': 'list objects of the bucket **{1}**[ below **{?prefix}**], or read what the query names of it',
    'GET /*/**': 'read **{**}** in the bucket **{1}**, or what the query names of it[, version **{?versionId}**]',
  },
};

export const READS: Readonly<Record<BuiltinName, Reads>> = {
  github: { words: githubReadWords, sentences: { ...introspection, ...githubReads } },
  slack: { sentences: slackReads },
  gmail,
  'google-calendar': calendar,
  notion,
  linear: { sentences: { ...introspection, ...linear.sentences } },
  jira,
  stripe,
  openai: {},
  anthropic,
  npm: { sentences: npmReads },
  kubernetes: { sentences: kubernetesReads },
  s3,
};
