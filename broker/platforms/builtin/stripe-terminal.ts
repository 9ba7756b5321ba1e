/**
 * Scopes of Stripe for readers at the counter (Terminal), for accounts that hold money (Treasury), and for what only test mode
 * has. Source as in stripe.ts.
 */
export const stripeTerminal = {
  'stripe:terminal.read': [
    'GET /v1/terminal/configurations',
    'GET /v1/terminal/configurations/*',
    'GET /v1/terminal/locations',
    'GET /v1/terminal/locations/*',
    'GET /v1/terminal/readers',
    'GET /v1/terminal/readers/*',
  ],
  'stripe:terminal.write': [
    'POST /v1/terminal/configurations',
    'POST /v1/terminal/configurations/*',
    'DELETE /v1/terminal/configurations/*',
    'POST /v1/terminal/locations',
    'POST /v1/terminal/locations/*',
    'DELETE /v1/terminal/locations/*',
    'POST /v1/terminal/readers',
    'POST /v1/terminal/readers/*',
    'DELETE /v1/terminal/readers/*',
    'POST /v1/terminal/readers/*/cancel_action',
    'POST /v1/terminal/readers/*/set_reader_display',
    'POST /v1/terminal/readers/*/collect_inputs',
  ],
  // Takes the money of whoever stands at the counter, or gives it back.
  'stripe:terminal.charge': [
    'POST /v1/terminal/readers/*/collect_payment_method',
    'POST /v1/terminal/readers/*/confirm_payment_intent',
    'POST /v1/terminal/readers/*/process_payment_intent',
    'POST /v1/terminal/readers/*/process_setup_intent',
    'POST /v1/terminal/readers/*/refund_payment',
  ],
  'stripe:treasury.read': [
    ...[
      'credit_reversals',
      'debit_reversals',
      'financial_accounts',
      'inbound_transfers',
      'outbound_payments',
      'outbound_transfers',
      'received_credits',
      'received_debits',
      'transaction_entries',
      'transactions',
    ].flatMap((what) => [`GET /v1/treasury/${what}`, `GET /v1/treasury/${what}/*`]),
    'GET /v1/treasury/financial_accounts/*/features',
  ],
  // Moves money out of and into accounts, and opens and closes them.
  'stripe:treasury.write': [
    'POST /v1/treasury/credit_reversals',
    'POST /v1/treasury/debit_reversals',
    'POST /v1/treasury/financial_accounts',
    'POST /v1/treasury/financial_accounts/*',
    'POST /v1/treasury/financial_accounts/*/close',
    'POST /v1/treasury/financial_accounts/*/features',
    'POST /v1/treasury/inbound_transfers',
    'POST /v1/treasury/inbound_transfers/*/cancel',
    'POST /v1/treasury/outbound_payments',
    'POST /v1/treasury/outbound_payments/*/cancel',
    'POST /v1/treasury/outbound_transfers',
    'POST /v1/treasury/outbound_transfers/*/cancel',
  ],
  // Stripe refuses all of these to keys of live mode.
  'stripe:test.write': [
    'POST /v1/test_helpers/confirmation_tokens',
    'POST /v1/test_helpers/customers/*/fund_cash_balance',
    'POST /v1/test_helpers/issuing/**',
    'POST /v1/test_helpers/refunds/*/expire',
    'POST /v1/test_helpers/terminal/readers/*/*',
    'POST /v1/test_helpers/test_clocks',
    'POST /v1/test_helpers/test_clocks/*/advance',
    'DELETE /v1/test_helpers/test_clocks/*',
    'POST /v1/test_helpers/treasury/**',
  ],
};
