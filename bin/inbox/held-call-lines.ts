/** Formats a held call in full, as the approval page shows it to the person who decides. */
import type { ExactRequest, HeldCall } from '../../broker/console/answers.ts';
import { heldBy } from '../../broker/console/static/inbox/entry-text.js';
import { describeApprovers } from '../../broker/console/static/request-view/approvers.js';
import { forWhom } from '../../broker/console/static/request-view/person.js';
import {
  changedTexts,
  counted,
  describeUpload,
  fromBase64,
  readEndpoint,
  sized,
} from '../../broker/console/static/request-view/text.js';
import { oddities, oddRecipient } from '../../broker/console/static/visible.js';
import { foreignText, invisibleCharacters, warnings, wrapped } from '../terminal/foreign-text.ts';
import { type Line, line, styled } from '../terminal/line.ts';

/** Formats a field with its name; a long value is wrapped beside the name. */
export function fieldLines(name: string, value: Line | string, width: number): Line[] {
  const [first = '', ...more] = wrapped(
    typeof value === 'string' ? line`${value}`.text : value.text,
    Math.max(20, width - 12),
  );
  return [line`${styled('quiet', name.padEnd(11))} ${first}`, ...more.map((each) => line`${' '.repeat(12)}${each}`)];
}

/** `width`: columns of the terminal. */
export function heldCallLines(held: HeldCall, width: number): Line[] {
  const { request, agent, platform, platform_name: name, connection, reason } = held;
  const approvers = describeApprovers(held);
  const parent = agent.parent ? line` (a child of ${agent.parent.name})` : line``;
  const head = [
    line`${styled('bold', agent.name)}${parent} wants to`,
    ...foreignText(`${held.sentence.text} on ${name}`, width),
    ...warnings(oddities(agent.name)),
    ...changedTexts(held).map((text) => styled('bad', text)),
    line``,
  ];
  if (!request)
    return [
      ...head,
      styled('bad', 'The stored request was altered and cannot be read. Deny it; the agent may ask again.'),
    ];
  const rules = held.held_because.rules.map(
    ({ source, name, says, effect, error }) =>
      line`${source} ${says ?? name}: ${effect.replaceAll('_', ' ')}${error ? ` (its condition failed: ${error})` : ''}`,
  );
  return [
    ...head,
    ...callLines(request, name, width),
    line``,
    ...recipientLines(request.recipients, width),
    ...fieldLines('Held by', held.held_because.detail ?? heldBy(held.held_because), width),
    ...(rules.length > 1 ? rules.flatMap((each) => fieldLines('', each, width)) : []),
    ...(approvers === undefined ? [] : fieldLines('Approvers', approvers, width)),
    ...(platform === name ? [] : fieldLines('Platform', platform, width)),
    ...fieldLines('Scope', held.scope, width),
    ...(connection?.label ? fieldLines('Connection', connection.label, width) : []),
    ...fieldLines('Agent', `${agent.agent_id}, ${agent.status}`, width),
    ...(request.caller ? fieldLines('On behalf', forWhom(request.caller), width) : []),
    line``,
    ...(request.upload
      ? [line`Body`, ...foreignText(`${describeUpload(request.upload)}, SHA-256 ${request.upload.sha256}`, width)]
      : bodyLines(request.body, width)),
    ...originalLines(held, width),
    ...headerLines(request.headers, width),
    ...(reason === null
      ? []
      : [
          line``,
          line`The agent's own words, which nobody checked:`,
          ...foreignText(reason, width),
          ...invisibleCharacters(reason),
        ]),
    line``,
    ...fieldLines('SHA-256', held.request_hash, width),
  ];
}

/** For a call that an owner corrected: what the agent had requested. */
function originalLines({ asked, corrected }: HeldCall, width: number): Line[] {
  if (!asked) return [];
  return [
    line``,
    line`Corrected by ${corrected?.by_email ?? 'an owner'}. The agent had requested:`,
    ...foreignText(asked.endpoint, width),
    ...(asked.body === null ? [] : foreignText(JSON.stringify(asked.body, undefined, 2), width)),
  ];
}

function callLines(request: ExactRequest, platform: string, width: number): Line[] {
  const { path, readsAs, query, parameters } = readEndpoint(request.endpoint);
  const texts = [readsAs ?? path, ...parameters.flatMap(({ name, value }) => [name, value])];
  return [
    line`${styled('bold', request.method)} on ${styled('bold', platform)}`,
    ...foreignText(query === '' ? path : `${path}?${query}`, width),
    ...(readsAs === undefined ? [] : [line`The path reads as`, ...foreignText(readsAs, width)]),
    ...(parameters.length === 0 ? [] : [line`Query`]),
    ...parameters.flatMap(({ name, value }) => foreignText(`${name}: ${value}`, width)),
    ...warnings(oddities(texts.join(' '))),
  ];
}

/** Unusual recipients first, because nobody reads a hundred addresses. */
function recipientLines(recipients: readonly string[], width: number): Line[] {
  if (recipients.length === 0) return [];
  const sorted = recipients
    .map((text) => ({ text, odd: oddRecipient(text) }))
    .toSorted((a, b) => b.odd.length - a.odd.length);
  return [
    line`${counted(recipients.length, 'recipient')}:`,
    ...sorted.flatMap(({ text, odd }) => [...foreignText(text, width), ...invisibleCharacters(text), ...warnings(odd)]),
  ];
}

function bodyLines(body: unknown, width: number): Line[] {
  if (body === null) return [line`No body.`];
  const texts = [...textsIn(body, '')];
  const decoded = texts.flatMap(({ at, text }) => {
    const read = fromBase64(text);
    return read === undefined
      ? []
      : [line`Decoded from base64, ${at} reads:`, ...foreignText(read, width), ...invisibleCharacters(read)];
  });
  return [
    line`Body, ${sized(Buffer.byteLength(JSON.stringify(body)))}:`,
    ...foreignText(JSON.stringify(body, null, 2), width),
    ...invisibleCharacters(texts.map(({ name, text }) => `${name}${text}`).join('')),
    ...decoded,
  ];
}

/** Yields every text in a body, with its member name and path. */
function* textsIn(value: unknown, at: string, name = ''): Generator<{ at: string; name: string; text: string }> {
  if (typeof value !== 'object' || value === null) {
    yield { at, name, text: typeof value === 'string' ? value : '' };
    return;
  }
  if (name !== '') yield { at, name, text: '' };
  for (const [key, each] of Object.entries(value))
    yield* textsIn(each, `${at}/${key}`, Array.isArray(value) ? '' : key);
}

function headerLines(headers: Readonly<Record<string, string>>, width: number): Line[] {
  const all = Object.entries(headers);
  if (all.length === 0) return [];
  return [line``, line`Headers:`, ...all.flatMap(([name, value]) => foreignText(`${name}: ${value}`, width))];
}
