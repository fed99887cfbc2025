// Starts the page.

import { render } from "preact";
import { App } from "./app";
import { crow } from "./connection";
import "./page.css";
import { takeLink } from "./token";

takeLink();
const root = document.getElementById("page");
if (root) render(<App />, root);
crow.start();
