// The whole page.

import type { JSX } from "preact";
import { crow } from "./connection";

export function App(): JSX.Element {
  return <main>{crow.state.value}</main>;
}
