// Headings of a held call's parts: one level below the page title on the approval page, and below the card title in the inbox.
/** @typedef {import('/console/html.js').Children} Children */
import { createContext, html, useContext } from '/console/html.js';

/** The level of a part's heading: 2 or 3. */
export const Level = createContext(3);

/** @param {{ children: Children }} props */
export const Heading = ({ children }) => html`<${`h${useContext(Level)}`} class="part-title">${children}<//>`;
