/** Answers of the lab's platforms, in their own forms: a few operations of each, reduced to what its client reads. */
import type { IncomingMessage } from 'node:http';

export type Answered = { type?: string; status?: number; body: unknown };

const xml = (body: string): Answered => ({
  type: 'application/xml',
  body: `<?xml version="1.0" encoding="UTF-8"?>${body}`,
});
const message = { id: 'm1', threadId: 't1', labelIds: ['SENT'], snippet: 'Hello' };
const page = { object: 'page', id: 'page-1', url: 'https://www.notion.so/page-1', properties: {} };
const completion = (body: string) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: JSON.parse(body).model,
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
});

const ANSWERS: Record<string, (operation: string, body: string) => Answered | undefined> = {
  github: (operation, body) => {
    if (operation === 'GET /repos/acme/app') return { body: { id: 1, full_name: 'acme/app', stargazers_count: 42 } };
    if (operation === 'POST /repos/acme/app/issues')
      return { status: 201, body: { number: 7, title: JSON.parse(body).title, state: 'open' } };
    return undefined;
  },
  slack: (operation, body) => {
    const form = new URLSearchParams(body);
    if (operation === 'POST /conversations.list')
      return { body: { ok: true, channels: [{ id: 'C1', name: 'general' }] } };
    if (operation === 'POST /chat.postMessage')
      return { body: { ok: true, channel: form.get('channel'), ts: '1.2', message: { text: form.get('text') } } };
    return undefined;
  },
  stripe: (operation, body) => {
    if (operation === 'GET /v1/customers/cus_1') return { body: { id: 'cus_1', object: 'customer', name: 'Ann' } };
    if (operation === 'POST /v1/customers')
      return { body: { id: 'cus_2', object: 'customer', name: new URLSearchParams(body).get('name') } };
    return undefined;
  },
  openai: (operation, body) => {
    if (operation === 'GET /models') return { body: { object: 'list', data: [{ id: 'gpt-x', object: 'model' }] } };
    return operation === 'POST /chat/completions' ? { body: completion(body) } : undefined;
  },
  anthropic: (operation, body) => {
    if (operation.startsWith('GET /v1/models'))
      return { body: { data: [{ id: 'claude-x', type: 'model' }], has_more: false } };
    if (operation !== 'POST /v1/messages') return undefined;
    const { model } = JSON.parse(body);
    const content = [{ type: 'text', text: 'Hi' }];
    return { body: { id: 'msg_1', type: 'message', role: 'assistant', model, content, stop_reason: 'end_turn' } };
  },
  notion: (operation) => {
    if (operation === 'GET /pages/page-1' || operation === 'POST /pages') return { body: page };
    return undefined;
  },
  linear: (_, body) => {
    if (body.includes('viewer')) return { body: { data: { viewer: { id: 'u1', name: 'Ann' } } } };
    if (!body.includes('issueCreate')) return undefined;
    return { body: { data: { issueCreate: { success: true, lastSyncId: 5, issue: { id: 'i1' } } } } };
  },
  gmail: (operation) => {
    if (operation === 'GET /gmail/v1/users/me/messages')
      return { body: { messages: [{ id: 'm1', threadId: 't1' }], resultSizeEstimate: 1 } };
    return operation === 'POST /gmail/v1/users/me/messages/send' ? { body: message } : undefined;
  },
  s3: (operation) => {
    if (/^GET \/bucket\/?\?/.test(operation))
      return xml(
        '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name><KeyCount>1</KeyCount><IsTruncated>false</IsTruncated><Contents><Key>a.txt</Key><Size>3</Size></Contents></ListBucketResult>',
      );
    if (/^POST \/bucket\/?\?delete/.test(operation))
      return xml('<DeleteResult><Deleted><Key>a.txt</Key></Deleted><Deleted><Key>b.txt</Key></Deleted></DeleteResult>');
    if (/^POST \/bucket\/new.txt\?uploads/.test(operation))
      return xml('<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>');
    if (/^POST \/bucket\/new.txt\?.*uploadId=u1/.test(operation))
      return xml('<CompleteMultipartUploadResult><ETag>"e"</ETag></CompleteMultipartUploadResult>');
    if (/^DELETE \/old\/?(?:\?|$)/.test(operation)) return { status: 204, type: 'application/xml', body: '' };
    if (operation.startsWith('GET /bucket/a.txt')) return { type: 'text/plain', body: 'abc' };
    return operation.startsWith('PUT /bucket/new.txt') ? { type: 'application/xml', body: '' } : undefined;
  },
};

/** Returns a platform's answer; 404 for an unknown path. The path of a request begins with the platform's id. */
export function answerOf({ method = '', url = '' }: IncomingMessage, body: string): Answered {
  const [, id = '', rest = ''] = /^\/([^/?]+)(.*)$/s.exec(url) ?? [];
  return ANSWERS[id]?.(`${method} ${rest}`, body) ?? { status: 404, body: { message: `no ${method} ${rest}` } };
}
