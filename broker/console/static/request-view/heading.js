// Headings of a held call's parts: below the page's own on the approval page, below the card's in the inbox.
/** @typedef {import('/console/html.js').Children} Children */
import { createContext, html, useContext } from '/console/html.js';

/** The level of a part's heading: 2 or 3. */
export const Level = createContext(3);

/** @param {{ children: Children }} props */
export const Heading = ({ children }) => html`<${`h${useContext(Level)}`} class="part-title">${children}<//>`;
