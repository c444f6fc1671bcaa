// What the type checker must be told of elements: the class of `h("button.small")`, and what the modules keep on elements.

/** The element that a tag with classes, as `button.small`, makes. */
type Made<K extends string> = K extends `${infer T}.${string}` ? Tagged<T> : Tagged<K>;
type Tagged<T extends string> = T extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[T] : HTMLElement;

/** The widget, as its panes see it. */
type App = import("./widget.js").App;

/** The first argument of a callback on the line to the kernel. */
type Events = Protocol.Panes & {
  busy: boolean;
  problem: Protocol.Problem;
  panes: Partial<Protocol.Panes>;
  still: Record<string, string>;
  fault: string;
  lost: undefined;
};

/** An answer to a question: the data, or the problem. */
type Answer<T> = ({ data: T; problem?: undefined } | { data?: undefined; problem: Protocol.Problem }) & {
  buffers?: DataView[];
  panes?: Partial<Protocol.Panes>;
};

// The page has elements of HTML alone, but for the pictures: what those of HTML have need not be asked for each time.
interface Element {
  /** What the modules keep on their elements: `keyed` the item shown, others their parts. */
  [kept: `ex${string}`]: any;
  dataset: DOMStringMap;
  tabIndex: number;
  hidden: any;
  inert: boolean;
  disabled: boolean;
  focus(options?: FocusOptions): void;
}
interface EventTarget {
  closest(selectors: string): HTMLElement | null;
}
/** Where Plotly has drawn. */
interface HTMLDivElement {
  on?(event: string, run: (event: any) => void): void;
  data?: any[];
  _fullLayout?: any;
}
