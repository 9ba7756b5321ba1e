// Whether a request has to be opened before it is approved together with others: its line in the list does not show everything that it does.
/** @typedef {import('../../answers.ts').HeldCall} HeldCall */
import { FIRST_RECIPIENTS, layOut, readBody } from '/console/request-view/fold.js';
import { countUnseen, readEndpoint } from '/console/request-view/text.js';
import { oddities, oddRecipient } from '/console/visible.js';

/** What the broker reports about an amount with unknown currency: not unusual, since the line shows it. */
const NO_CURRENCY = /^(?:no currency given|in a unit of .* that is not known)$/;

/**
 * Whether a part of the request is folded when it is opened, or is not what it seems.
 *
 * @param {Pick<HeldCall, 'request' | 'reason' | 'sentence'>} held
 */
export const hasToBeOpened = (held) => held.request === null || folds(held.request) || isOdd(held.request, held);

/** @param {NonNullable<HeldCall['request']>} request */
const folds = ({ body, recipients }) =>
  recipients.length > FIRST_RECIPIENTS || (body !== null && layOut(readBody(body), new Map()).folds > 0);

/**
 * @param {NonNullable<HeldCall['request']>} request
 * @param {Pick<HeldCall, 'reason' | 'sentence'>} said
 */
function isOdd({ endpoint, recipients, body, headers }, { reason, sentence }) {
  const { path, readsAs, parameters } = readEndpoint(endpoint);
  const read = [readsAs ?? path, ...parameters.flatMap(({ name, value }) => [name, value])].join(' ');
  const texts = [read, reason ?? '', body === null ? '' : JSON.stringify(body), JSON.stringify(headers), ...recipients];
  return (
    oddities(read).length > 0 ||
    recipients.some((recipient) => oddRecipient(recipient).length > 0) ||
    texts.some((text) => countUnseen(text.replaceAll('\n', ' ')) > 0) ||
    sentence.parts.some((part) => 'note' in part && part.note !== undefined && !NO_CURRENCY.test(part.note))
  );
}
