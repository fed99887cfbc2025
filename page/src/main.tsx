// Starts the page.

import { render } from "preact";
import { App } from "./app";
import { crow } from "./connection";
import { startKeys } from "./keys";
import { listenForQuestions } from "./model/questions";
import { start } from "./model/sessions";
import { startNotify } from "./notify";
import "./page.css";
import "./widgets.css";
import { startRoute } from "./route";
import { startTheme } from "./theme";
import { takeLink } from "./token";

takeLink();
startTheme();
listenForQuestions();
start();
startRoute();
startNotify();
startKeys();
const root = document.getElementById("page");
if (root) render(<App />, root);
crow.start();
