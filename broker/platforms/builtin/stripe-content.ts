/**
 * Members by which one operation of Stripe does what another scope is kept for: names from the types of Stripe's own clients, earlier ones
 * too, as agents choose the version (`Stripe-Version`), and each takes the names that it had. Bodies are forms, in which `false` is a
 * text, and an empty text takes a value away.
 */
const member = (name: string, scope: string | null, unless: string[] = []) => ({
  pointer: `/${name}`,
  ...(unless.length > 0 && { unless }),
  scope,
});

const ofCustomer = [
  // The credit, or debt, of the next invoices.
  member('balance', 'stripe:customers.balance.write'),
  member('account_balance', 'stripe:customers.balance.write'),
  member('cash_balance', 'stripe:customers.balance.write'),
  // A card or bank account.
  ...['source', 'card', 'bank_account'].map((name) => member(name, 'stripe:sources.write')),
  // Subscribes the customer, too. No one scope is both.
  member('plan', null),
];
/** A card or bank account for the customer, too. */
const ofSubscription = ['source', 'card'].map((name) => member(name, null));
/** Finalised by Stripe after an hour. */
const ofInvoice = [
  member('auto_advance', 'stripe:invoices.finalize', ['false']),
  // Collected no more, or again; and given up.
  member('closed', 'stripe:invoices.finalize'),
  member('forgiven', 'stripe:invoices.finalize', ['false']),
  // Paid outside of Stripe, as `paid_out_of_band` of paying it says.
  member('paid', 'stripe:invoices.pay', ['false']),
];
/** `none` cancels the subscription, as `cancel` does. */
const ofSchedule = ['end_behavior', 'renewal_behavior'].map((name) =>
  member(name, 'stripe:subscriptions.cancel', ['release', 'renew']),
);
const confirmed = [member('confirm', 'stripe:payments.charge', ['false'])];
/** Says to which bank account money goes, as what test/platforms/left-out.ts names does. */
const ofAccount = [member('external_account', null), member('bank_account', null)];

export const stripeContentScopes = {
  'POST /v1/customers': ofCustomer,
  'POST /v1/customers/*': ofCustomer,
  'POST /v1/accounts': ofAccount,
  'POST /v1/accounts/*': ofAccount,
  'POST /v1/subscriptions': ofSubscription,
  'POST /v1/subscriptions/*': [
    ...ofSubscription,
    member('cancel_at_period_end', 'stripe:subscriptions.cancel', ['false']),
    member('cancel_at', 'stripe:subscriptions.cancel', ['']),
  ],
  'POST /v1/subscription_schedules': ofSchedule,
  'POST /v1/subscription_schedules/*': ofSchedule,
  'POST /v1/payment_intents': confirmed,
  'POST /v1/setup_intents': confirmed,
  'POST /v1/invoices': ofInvoice,
  'POST /v1/invoices/*': ofInvoice,
  'POST /v1/credit_notes': [
    member('refund_amount', 'stripe:refunds.write', ['0']),
    member('credit_amount', 'stripe:customers.balance.write', ['0']),
  ],
};
