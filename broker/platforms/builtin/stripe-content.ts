/**
 * Members by which one operation of Stripe does what another scope is kept for: names from the types of Stripe's own client. Bodies
 * are forms, in which `false` is a text, and an empty text takes a value away.
 */
const member = (name: string, scope: string | null, unless: string[] = []) => ({
  pointer: `/${name}`,
  ...(unless.length > 0 && { unless }),
  scope,
});

const ofCustomer = [
  // The credit, or debt, of the next invoices.
  member('balance', 'stripe:customers.balance.write'),
  member('cash_balance', 'stripe:customers.balance.write'),
  // A card or bank account.
  member('source', 'stripe:sources.write'),
];
/** Finalised by Stripe after an hour. */
const ofInvoice = [member('auto_advance', 'stripe:invoices.finalize', ['false'])];
const ofSchedule = [member('end_behavior', 'stripe:subscriptions.cancel', ['release', 'none', 'renew'])];
const confirmed = [member('confirm', 'stripe:payments.charge', ['false'])];
/** Says to which bank account money goes, as what `stripeLeftOut` names does. */
const ofAccount = [member('external_account', null)];

export const stripeContentScopes = {
  'POST /v1/customers': ofCustomer,
  'POST /v1/customers/*': ofCustomer,
  'POST /v1/accounts': ofAccount,
  'POST /v1/accounts/*': ofAccount,
  'POST /v1/subscriptions/*': [
    member('cancel_at_period_end', 'stripe:subscriptions.cancel', ['false']),
    member('cancel_at', 'stripe:subscriptions.cancel', ['']),
  ],
  'POST /v1/subscription_schedules': ofSchedule,
  'POST /v1/subscription_schedules/*': ofSchedule,
  'POST /v1/payment_intents': confirmed,
  'POST /v1/setup_intents': confirmed,
  'POST /v1/invoices': ofInvoice,
  'POST /v1/invoices/*': ofInvoice,
  'POST /v1/credit_notes': [member('refund_amount', 'stripe:refunds.write')],
};
