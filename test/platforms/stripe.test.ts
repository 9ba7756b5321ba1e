import { expect, test } from 'vitest';
import type { JsonObject } from '../../broker/policy/facts.ts';
import { refuseRecipients } from '../../broker/policy/recipients.ts';
import { classifierOf, manifestOf, rulesOf } from './classified.ts';

const ask = classifierOf('stripe');

test('bodies are forms', () => {
  expect(manifestOf('stripe').body).toBe('form');
});

test('headers that select another account are refused', () => {
  expect(manifestOf('stripe').refused_headers).toEqual(['stripe-account', 'stripe-context']);
});

test.each<[string, JsonObject, string[] | undefined]>([
  ['/v1/charges', { amount: 1 }, undefined],
  ['/v1/payment_intents', { amount: 1, receipt_email: 'ann@acme.example' }, undefined],
  ['/v1/payment_intents', { amount: 1, receipt_email: 'x@evil.example' }, ['x@evil.example']],
  ['/v1/payment_intents/pi_1', { receipt_email: '' }, undefined],
  ['/v1/payment_intents/pi_1/confirm', { receipt_email: { a: 1 } }, ['{"a":1}']],
  ['/v1/refunds', { charge: 'ch_1' }, undefined],
  ['/v1/refunds', { charge: 'ch_1', instructions_email: 'x@evil.example' }, ['x@evil.example']],
  ['/v1/customers', { name: 'Ann' }, undefined],
  ['/v1/customers/cus_1', { email: 'x@evil.example' }, ['x@evil.example']],
  ['/v1/invoices/in_1/send', {}, []],
  ['/v1/charges/ch_1/capture', { receipt_email: 'x@evil.example' }, ['x@evil.example']],
  ['/v1/checkout/sessions', { payment_intent_data: { receipt_email: 'x@evil.example' } }, ['x@evil.example']],
])('POST %s %j under a recipient constraint: %j', (path, body, violating) => {
  const call = { method: 'POST', path, query: '', headers: {}, body } as const;
  expect(refuseRecipients(['@acme.example'], rulesOf('stripe'), call)?.violating).toEqual(violating);
});

const transferring = (automatic_transfer_rules_by_currency: JsonObject): JsonObject => ({
  payments: { payouts: { automatic_transfer_rules_by_currency } },
});
const toOther = { transfer_data: { destination: 'acct_evil' } };

test.each<[string, JsonObject, string[] | undefined]>([
  ['/v1/transfers', { amount: 1, currency: 'eur', destination: 'acct_ok' }, undefined],
  ['/v1/transfers', { amount: 1, currency: 'eur', destination: 'acct_evil' }, ['acct_evil']],
  ['/v1/payouts', { amount: 1, currency: 'eur' }, undefined],
  ['/v1/payouts', { amount: 1, currency: 'eur', destination: 'ba_evil' }, ['ba_evil']],
  ['/v1/payouts', { amount: 1, currency: 'eur', payout_method: 'fa_evil' }, ['fa_evil']],
  ['/v1/payouts', { amount: 1, currency: 'eur', payout_method: 'acct_ok' }, undefined],
  ['/v1/balance_settings', { payments: { payouts: { schedule: { interval: 'daily' } } } }, undefined],
  ['/v1/balance_settings', transferring({ eur: [{ type: 'transfer_all', payout_method: 'fa_evil' }] }), ['fa_evil']],
  ['/v1/balance_settings', transferring({ eur: { 0: { payout_method: 'fa_evil' } } }), ['fa_evil']],
  ['/v1/balance_settings', transferring({ eur: [{ payout_method: 'acct_ok' }] }), undefined],
  ['/v1/treasury/outbound_payments', { destination_payment_method: 'pm_evil' }, ['pm_evil']],
  [
    '/v1/treasury/outbound_payments',
    { destination_payment_method_data: { type: 'us_bank_account' } },
    ['{"type":"us_bank_account"}'],
  ],
  ['/v1/charges', { amount: 1, transfer_data: { destination: 'acct_ok' } }, undefined],
  ['/v1/charges', { amount: 1, ...toOther }, ['acct_evil']],
  ['/v1/charges', { amount: 1, destination: 'acct_evil' }, ['acct_evil']],
  ['/v1/charges', { amount: 1, destination: { account: 'acct_evil' } }, ['{"account":"acct_evil"}']],
  ['/v1/payment_intents', { amount: 1, ...toOther }, ['acct_evil']],
  ['/v1/subscriptions', { customer: 'cus_1' }, undefined],
  ['/v1/subscriptions/sub_1', toOther, ['acct_evil']],
  ['/v1/invoices/in_1', toOther, ['acct_evil']],
  ['/v1/quotes', toOther, ['acct_evil']],
  ['/v1/checkout/sessions', { payment_intent_data: toOther }, ['acct_evil']],
  ['/v1/payment_links', { subscription_data: toOther }, ['acct_evil']],
  ['/v1/subscription_schedules', { phases: [toOther] }, ['acct_evil']],
  ['/v1/subscription_schedules/sub_sched_1', { default_settings: toOther }, ['acct_evil']],
  ['/v1/subscription_schedules/sub_sched_1', { end_behavior: 'release' }, undefined],
])('POST %s %j with one account allowed as recipient of money: %j', (path, body, violating) => {
  const call = { method: 'POST', path, query: '', headers: {}, body } as const;
  expect(refuseRecipients(['acct_ok'], rulesOf('stripe'), call)?.violating).toEqual(violating);
});

test.each([
  ['GET /v1/customers', 'customers.read'],
  ['GET /v1/customers/cus_9s6XKzkNRiz8i3', 'customers.read'],
  ['POST /v1/customers', 'customers.write'],
  ['DELETE /v1/customers/cus_1', 'customers.delete'],
  ['GET /v1/charges/ch_1', 'payments.read'],
  ['GET /v1/payment_intents/search', 'payments.read'],
  ['POST /v1/payment_intents', 'payments.create'],
  ['POST /v1/payment_intents/pi_1/confirm', 'payments.charge'],
  ['POST /v1/payment_intents/pi_1/cancel', 'payments.cancel'],
  ['GET /v1/refunds', 'refunds.read'],
  ['POST /v1/refunds', 'refunds.write'],
  ['POST /v1/payouts', 'payouts.write'],
  ['POST /v1/transfers', 'transfers.write'],
  ['GET /v1/balance', 'balance.read'],
  ['POST /v1/invoices', 'invoices.write'],
  ['POST /v1/invoices/create_preview', 'invoices.read'],
  ['POST /v1/invoices/in_1/send', 'invoices.send'],
  ['POST /v1/invoices/in_1/pay', 'invoices.pay'],
  ['DELETE /v1/invoices/in_1', 'invoices.delete'],
  ['POST /v1/subscriptions', 'subscriptions.write'],
  ['DELETE /v1/subscriptions/sub_1', 'subscriptions.cancel'],
  ['GET /v1/products', 'catalog.read'],
  ['POST /v1/prices', 'catalog.write'],
  ['POST /v1/disputes/dp_1/close', 'disputes.close'],
  ['POST /v1/webhook_endpoints', 'webhooks.write'],
  // Each further area has its own scope.
  ['POST /v1/balance_settings', 'settings.write'],
  ['POST /v1/tax_ids', 'settings.write'],
  ['POST /v1/billing/meters/mtr_1/deactivate', 'billing.write'],
  ['POST /v1/billing/credit_grants', 'credits.write'],
  ['POST /v1/customers/cus_1/sources', 'sources.write'],
  ['DELETE /v1/customers/cus_1/sources/card_1', 'sources.write'],
  ['GET /v1/terminal/readers/tmr_1', 'terminal.read'],
  ['DELETE /v1/terminal/readers/tmr_1', 'terminal.write'],
  ['POST /v1/terminal/readers/tmr_1/process_payment_intent', 'terminal.charge'],
  ['POST /v1/terminal/readers/tmr_1/refund_payment', 'terminal.charge'],
  ['GET /v1/treasury/transactions', 'treasury.read'],
  ['POST /v1/treasury/outbound_payments', 'treasury.write'],
  ['POST /v1/test_helpers/refunds/re_1/expire', 'test.write'],
  ['DELETE /v1/test_helpers/test_clocks/clock_1', 'test.write'],
])('%s: %s', (operation, scope) => {
  expect(ask(operation)).toEqual([`stripe:${scope}`]);
});

test.each<[string, JsonObject, string]>([
  ['POST /v1/invoices/in_1', { description: 'x' }, 'invoices.write'],
  ['POST /v1/invoices/in_1', { auto_advance: true }, 'invoices.finalize'],
  ['POST /v1/invoices/in_1', { forgiven: 'true' }, 'invoices.finalize'],
  ['POST /v1/invoices/in_1', { paid: true }, 'invoices.pay'],
  ['POST /v1/invoices/in_1', { paid: 'true' }, 'invoices.pay'],
  ['POST /v1/invoices/in_1', { paid: false }, 'invoices.write'],
])('%s with %j: %s', (operation, body, scope) => {
  expect(ask(operation, body)).toEqual([`stripe:${scope}`]);
});

test.each([
  'PUT /v1/customers/cus_1',
  'PATCH /v1/customers/cus_1',
  'DELETE /v1/charges/ch_1',
  'DELETE /v1/refunds/re_1',
  'POST /v1/balance',
  'POST /v1/ephemeral_keys',
  'POST /v1/account_links',
  'POST /v1/tokens',
  'GET /v1/apps/secrets/find',
  'GET /v1/issuing/cards/ic_1',
  'POST /v1/issuing/authorizations/iauth_1/approve',
  'POST /v1/accounts/acct_1/external_accounts',
  'POST /v1/accounts/acct_1/unreject',
  'POST /v1/accounts/acct_1/login_links',
  'POST /v1/terminal/connection_tokens',
  'POST /v1/Refunds',
  'POST /v1/refunds/re_1/Cancel',
  'POST /v2/core/accounts',
  'POST /refunds',
])('in no scope: %s', (operation) => {
  expect(ask(operation)).toBe('unclassified');
});
