/**
 * Members that make an operation of Stripe do what needs a further scope: names from the types of Stripe's own clients, including earlier ones, since agents
 * choose the version (`Stripe-Version`), and each version accepts the names that it had. Bodies are forms, in which `false` is a text, and an empty text
 * removes a value.
 */
const member = (name: string, scope: string | null, unless: string[] = []) => ({
  pointer: `/${name}`,
  ...(unless.length > 0 && { unless }),
  scope,
});

const ofCustomer = [
  // The credit, or debt, that is settled with the next invoices.
  member('balance', 'stripe:customers.balance.write'),
  member('account_balance', 'stripe:customers.balance.write'),
  member('cash_balance', 'stripe:customers.balance.write'),
  // A card or bank account.
  ...['source', 'card', 'bank_account'].map((name) => member(name, 'stripe:sources.write')),
  // Also subscribes the customer. No single scope covers both.
  member('plan', null),
];
/** Also adds a card or bank account to the customer. */
const ofSubscription = ['source', 'card'].map((name) => member(name, null));
/** Members that make Stripe finalise the invoice after an hour. */
const ofInvoice = [
  member('auto_advance', 'stripe:invoices.finalize', ['false']),
  // Stops or resumes collecting the invoice; and writes it off.
  member('closed', 'stripe:invoices.finalize'),
  member('forgiven', 'stripe:invoices.finalize', ['false']),
  // Marks the invoice as paid outside of Stripe, like `paid_out_of_band` when paying it.
  member('paid', 'stripe:invoices.pay', ['false']),
];
/** `none` cancels the subscription, as `cancel` does. */
const ofSchedule = ['end_behavior', 'renewal_behavior'].map((name) =>
  member(name, 'stripe:subscriptions.cancel', ['release', 'renew']),
);
const confirmed = [member('confirm', 'stripe:payments.charge', ['false'])];
/** Sets the bank account that receives money, like the operations in test/platforms/unscoped-operations.ts. */
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
