/**
 * Members in which calls of built-in platforms may differ under one standing approval: content, and amounts of money up to a limit. Never recipients,
 * destinations, visibility or times: these must equal those of the held call.
 */
export const freeMembers = {
  github: {
    'POST /repos/*/*/issues': ['/title', '/body'],
    'PATCH /repos/*/*/issues/*': ['/title', '/body'],
    'POST /repos/*/*/issues/*/comments': ['/body'],
    'PATCH /repos/*/*/issues/comments/*': ['/body'],
    'POST /repos/*/*/pulls/*/comments': ['/body'],
    'POST /repos/*/*/pulls/*/comments/*/replies': ['/body'],
    'PATCH /repos/*/*/pulls/comments/*': ['/body'],
  },
  slack: {
    'POST /chat.postMessage': ['/text', '/blocks', '/thread_ts'],
    'POST /chat.postEphemeral': ['/text', '/blocks', '/thread_ts'],
    'POST /chat.update': ['/text', '/blocks'],
    'POST /chat.scheduleMessage': ['/text', '/blocks'],
  },
  stripe: { 'POST /v1/refunds': [{ member: '/amount', at_most: true }] },
  jira: {
    'POST /rest/api/3/issue': ['/fields/summary', '/fields/description'],
    'POST /rest/api/3/issue/*/comment': ['/body'],
    'PUT /rest/api/3/issue/*/comment/*': ['/body'],
  },
  notion: { 'POST /comments': ['/rich_text'], 'PATCH /comments/*': ['/rich_text'] },
  googleCalendar: {
    'POST /calendars/*/events': ['/summary', '/description'],
    'PATCH /calendars/*/events/*': ['/summary', '/description'],
  },
} satisfies Record<string, Record<string, (string | { member: string; at_most: true })[]>>;
