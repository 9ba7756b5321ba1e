/**
 * Stripe's API, version 1: paths from Stripe's own client (stripe/stripe-node 2026-08). Bodies are form-encoded. In no scope
 * on purpose: what answers with a credential or a way in (ephemeral keys, account and login links, tokens, app
 * secrets), Issuing, Treasury, Terminal and the test helpers.
 */
import type { ManifestInput } from '../manifest.ts';
import { stripeCatalog } from './stripe-catalog.ts';

const optional = (pointer: string) => ({ pointer, optional: true });

export const stripe = {
  kind: 'rest',
  name: 'Stripe',
  docs: 'https://docs.stripe.com/api',
  base_url: 'https://api.stripe.com',
  // With these a call works on another account: a connected one of a platform, or one of the organisation.
  forbidden_headers: ['stripe-account', 'stripe-context'],
  auth: { type: 'bearer' },
  body: 'form',
  scopes: {
    ...stripeCatalog,
    'stripe:customers.read': [
      'GET /v1/customers',
      'GET /v1/customers/search',
      'GET /v1/customers/*',
      'GET /v1/customers/*/balance_transactions/**',
      'GET /v1/customers/*/cash_balance',
      'GET /v1/customers/*/cash_balance_transactions/**',
      'GET /v1/customers/*/tax_ids/**',
    ],
    'stripe:customers.write': [
      'POST /v1/customers',
      'POST /v1/customers/*',
      'POST /v1/customers/*/tax_ids',
      'DELETE /v1/customers/*/tax_ids/*',
      'DELETE /v1/customers/*/discount',
    ],
    'stripe:customers.delete': ['DELETE /v1/customers/*'],
    // Credit that the next invoices are paid from.
    'stripe:customers.balance.write': [
      'POST /v1/customers/*/balance_transactions',
      'POST /v1/customers/*/balance_transactions/*',
      'POST /v1/customers/*/cash_balance',
    ],
    'stripe:payments.read': [
      'GET /v1/charges',
      'GET /v1/charges/search',
      'GET /v1/charges/*',
      'GET /v1/payment_intents',
      'GET /v1/payment_intents/search',
      'GET /v1/payment_intents/*',
      'GET /v1/payment_intents/*/amount_details_line_items',
      'GET /v1/setup_intents',
      'GET /v1/setup_intents/*',
      'GET /v1/setup_attempts',
      'GET /v1/mandates/*',
    ],
    // With `confirm: true` in its body, creating an intent charges at once; a policy's `when` can look at that.
    'stripe:payments.create': [
      'POST /v1/payment_intents',
      'POST /v1/payment_intents/*',
      'POST /v1/setup_intents',
      'POST /v1/setup_intents/*',
      'POST /v1/charges/*',
    ],
    // Takes the money.
    'stripe:payments.charge': [
      'POST /v1/charges',
      'POST /v1/charges/*/capture',
      'POST /v1/payment_intents/*/confirm',
      'POST /v1/payment_intents/*/capture',
      'POST /v1/payment_intents/*/increment_authorization',
      'POST /v1/payment_intents/*/apply_customer_balance',
      'POST /v1/setup_intents/*/confirm',
    ],
    'stripe:payments.cancel': ['POST /v1/payment_intents/*/cancel', 'POST /v1/setup_intents/*/cancel'],
    'stripe:paymentmethods.read': [
      'GET /v1/payment_methods',
      'GET /v1/payment_methods/*',
      'GET /v1/customers/*/payment_methods',
      'GET /v1/customers/*/payment_methods/*',
      'GET /v1/customers/*/sources',
    ],
    'stripe:paymentmethods.write': [
      'POST /v1/payment_methods/*',
      'POST /v1/payment_methods/*/attach',
      'POST /v1/payment_methods/*/detach',
    ],
    'stripe:refunds.read': ['GET /v1/refunds', 'GET /v1/refunds/*'],
    'stripe:refunds.write': ['POST /v1/refunds', 'POST /v1/refunds/*', 'POST /v1/refunds/*/cancel'],
    'stripe:creditnotes.write': ['POST /v1/credit_notes', 'POST /v1/credit_notes/*', 'POST /v1/credit_notes/*/void'],
    'stripe:disputes.read': ['GET /v1/disputes', 'GET /v1/disputes/*'],
    'stripe:disputes.write': ['POST /v1/disputes/*'],
    // Closing a dispute is losing it.
    'stripe:disputes.close': ['POST /v1/disputes/*/close'],
    'stripe:balance.read': ['GET /v1/balance', 'GET /v1/balance_transactions', 'GET /v1/balance_transactions/*'],
    'stripe:payouts.read': ['GET /v1/payouts', 'GET /v1/payouts/*'],
    'stripe:payouts.write': [
      'POST /v1/payouts',
      'POST /v1/payouts/*',
      'POST /v1/payouts/*/cancel',
      'POST /v1/payouts/*/reverse',
    ],
    'stripe:transfers.read': [
      'GET /v1/transfers',
      'GET /v1/transfers/*',
      'GET /v1/transfers/*/reversals/**',
      'GET /v1/topups',
      'GET /v1/topups/*',
      'GET /v1/application_fees',
      'GET /v1/application_fees/*',
      'GET /v1/application_fees/*/refunds/**',
    ],
    'stripe:transfers.write': [
      'POST /v1/transfers',
      'POST /v1/transfers/*',
      'POST /v1/transfers/*/reversals',
      'POST /v1/transfers/*/reversals/*',
      'POST /v1/topups',
      'POST /v1/topups/*',
      'POST /v1/topups/*/cancel',
      'POST /v1/application_fees/*/refunds',
    ],
    'stripe:checkout.read': [
      'GET /v1/checkout/sessions',
      'GET /v1/checkout/sessions/*',
      'GET /v1/checkout/sessions/*/line_items',
      'GET /v1/payment_links',
      'GET /v1/payment_links/*',
      'GET /v1/payment_links/*/line_items',
    ],
    'stripe:checkout.write': [
      'POST /v1/checkout/sessions',
      'POST /v1/checkout/sessions/*',
      'POST /v1/checkout/sessions/*/expire',
      'POST /v1/payment_links',
      'POST /v1/payment_links/*',
    ],
    'stripe:tax.read': ['GET /v1/tax/calculations/**', 'GET /v1/tax/registrations/**', 'GET /v1/tax/transactions/**'],
    'stripe:tax.write': ['POST /v1/tax/calculations', 'POST /v1/tax/transactions/create_from_calculation'],
    'stripe:radar.read': [
      'GET /v1/reviews',
      'GET /v1/reviews/*',
      'GET /v1/radar/early_fraud_warnings/**',
      'GET /v1/radar/value_lists/**',
      'GET /v1/radar/value_list_items/**',
    ],
    'stripe:radar.approve': ['POST /v1/reviews/*/approve'],
    'stripe:events.read': ['GET /v1/events', 'GET /v1/events/*'],
    'stripe:reports.read': ['GET /v1/reporting/report_runs/**', 'GET /v1/reporting/report_types/**'],
    'stripe:reports.run': ['POST /v1/reporting/report_runs'],
    'stripe:webhooks.read': ['GET /v1/webhook_endpoints', 'GET /v1/webhook_endpoints/*'],
    // A new endpoint's answer holds its signing secret, and it receives everything that happens.
    'stripe:webhooks.write': [
      'POST /v1/webhook_endpoints',
      'POST /v1/webhook_endpoints/*',
      'DELETE /v1/webhook_endpoints/*',
    ],
    'stripe:accounts.read': [
      'GET /v1/account',
      'GET /v1/accounts',
      'GET /v1/accounts/*',
      'GET /v1/accounts/*/capabilities/**',
      'GET /v1/accounts/*/persons/**',
    ],
    'stripe:accounts.write': ['POST /v1/accounts', 'POST /v1/accounts/*'],
    'stripe:accounts.delete': ['DELETE /v1/accounts/*', 'POST /v1/accounts/*/reject'],
  },
  recipients: {
    'POST /v1/charges': [optional('/receipt_email')],
    'POST /v1/charges/*': [optional('/receipt_email')],
    'POST /v1/payment_intents': [optional('/receipt_email')],
    'POST /v1/payment_intents/*': [optional('/receipt_email')],
    'POST /v1/payment_intents/*/confirm': [optional('/receipt_email')],
    'POST /v1/refunds': [optional('/instructions_email')],
    'POST /v1/customers': [optional('/email')],
    'POST /v1/customers/*': [optional('/email')],
    'POST /v1/checkout/sessions': [optional('/customer_email')],
    // Goes to the customer's address, which the call does not name: under a recipient constraint it is refused.
    'POST /v1/invoices/*/send': ['/to'],
  },
} satisfies ManifestInput;
